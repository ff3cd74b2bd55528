import unittest

from inventory import Inventory


class InventoryTest(unittest.TestCase):
    def test_adding_twice_adds_up(self):
        stock = Inventory()
        stock.add("tea", 4.5, 2)
        stock.add("tea", 4.5, 1)
        self.assertEqual(stock.total(), 13.5)

    def test_removing_too_many_is_refused(self):
        stock = Inventory()
        stock.add("tea", 4.5)
        with self.assertRaises(ValueError):
            stock.remove("tea", 2)

    def test_total_is_rounded_to_cents(self):
        stock = Inventory()
        stock.add("salt", 0.1, 3)
        self.assertEqual(stock.total(), 0.3)
