"""A till for the terminal: one command per line on standard input. Run with: python3 -m tools.till

    add mug 2 | remove mug | total | pay 4242424242424242 | ship 1 | cancel 1 | find tea
"""

import logging
import sys

from shop import catalogue, orders
from shop.cart import Cart

log = logging.getLogger("till")


class Till:
    def __init__(self):
        self.products = catalogue.load()
        self.cart = Cart(self.products)
        self.orders = {}

    def do(self, command, *words):
        """Do one command and return what to print."""
        if command == "add":
            self.cart.add(words[0], int(words[1]) if len(words) > 1 else 1)
            return f"{self.cart.total_cents()} cents"
        if command == "remove":
            self.cart.remove(words[0])
            return f"{self.cart.total_cents()} cents"
        if command == "total":
            return f"{self.cart.total_cents()} cents"
        if command == "pay":
            order = orders.place(self.cart, words[0])
            self.orders[order["number"]] = order
            self.cart = Cart(self.products)
            return f"order {order['number']} paid: {order['receipt']['cents']} cents"
        if command in ("ship", "cancel"):
            change = orders.ship if command == "ship" else orders.cancel
            order = change(self.orders[int(words[0])])
            self.orders[order["number"]] = order
            return f"order {order['number']} is {order['state']}"
        if command == "find":
            return "\n".join(f"{p['code']} {p['cents']}" for p in catalogue.search(self.products, words[0]))
        raise ValueError(f"unknown command {command}")


def main():
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s", level=logging.INFO)
    till = Till()
    for line in sys.stdin:
        if not line.strip():
            continue
        try:
            print(till.do(*line.split()))
        # FIXME: too wide: our mistakes and those of customers look the same. And `pay` logs the card number.
        except Exception:
            log.exception("failed: %s", line.strip())


if __name__ == "__main__":
    main()
