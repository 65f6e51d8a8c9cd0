"""Run with: python3 -m unittest"""

import random
import unittest

from shop import catalogue, orders, payments
from shop.cart import FREE_SHIPPING_CENTS, MAX_PIECES, SHIPPING_CENTS, Cart


class CatalogueTest(unittest.TestCase):
    def test_products_have_a_price_and_a_stock(self):
        for code, product in catalogue.load().items():
            self.assertGreater(catalogue.price_cents({code: product}, code), 0)
            self.assertGreaterEqual(product["stock"], 0)

    def test_search_gives_the_cheapest_first(self):
        found = catalogue.search(catalogue.load(), "tea")
        self.assertEqual(found[0]["code"], "strainer")

    def test_unknown_products_are_refused(self):
        with self.assertRaises(catalogue.UnknownProduct):
            catalogue.price_cents(catalogue.load(), "coffee")


class CartTest(unittest.TestCase):
    def setUp(self):
        self.cart = Cart(catalogue.load())

    def test_small_carts_pay_for_shipping(self):
        self.cart.add("mug")
        self.assertEqual(self.cart.total_cents(), 1490 + SHIPPING_CENTS)

    def test_what_cannot_be_delivered_is_refused(self):
        for code, count in [("rooibos", 1), ("kettle", 13), ("mug", 0), ("mug", MAX_PIECES + 1)]:
            with self.assertRaises(ValueError):
                self.cart.add(code, count)

    def test_random_carts_add_up(self):
        chance = random.Random(1)
        products = catalogue.load()
        for _ in range(500):
            cart = Cart(products)
            for code in chance.sample(["mug", "sencha", "assam", "tin"], 3):
                cart.add(code, chance.randint(1, 9))
            goods = sum(products[c]["cents"] * n for c, n in cart.counts.items())
            shipping = 0 if goods >= FREE_SHIPPING_CENTS else SHIPPING_CENTS
            self.assertEqual(cart.total_cents(), goods + shipping)


class OrderTest(unittest.TestCase):
    def order(self):
        cart = Cart(catalogue.load())
        cart.add("assam", 2)
        return orders.place(cart, payments.TEST_CARD)

    def test_a_cancelled_order_is_refunded(self):
        self.assertEqual(orders.cancel(self.order())["receipt"]["cents"], 0)

    def test_a_shipped_order_stays(self):
        with self.assertRaises(ValueError):
            orders.cancel(orders.ship(self.order()))

    def test_wrong_cards_are_declined(self):
        with self.assertRaises(payments.Declined):
            payments.charge("4242424242424241", 100)

    def test_an_empty_cart_is_no_order(self):
        with self.assertRaises(ValueError):
            orders.place(Cart(catalogue.load()), payments.TEST_CARD)


if __name__ == "__main__":
    unittest.main()
