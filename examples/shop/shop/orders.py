"""An order: a cart that was paid."""

import itertools

from shop import payments

NUMBERS = itertools.count(1)


def place(cart, card):
    """Pay a cart and turn it into an order."""
    if not cart.counts:
        raise ValueError("the cart is empty")
    receipt = payments.charge(card, cart.total_cents())
    # TODO: the stock in the catalogue is not reduced.
    return {"number": next(NUMBERS), "lines": dict(cart.counts), "receipt": receipt, "state": "open"}


def ship(order):
    if order["state"] != "open":
        raise ValueError(f"order {order['number']} is {order['state']}")
    return {**order, "state": "shipped"}


def cancel(order):
    """Cancel an order that has not been shipped, and give the money back."""
    if order["state"] == "shipped":
        raise ValueError(f"order {order['number']} is shipped already")
    return {**order, "receipt": payments.refund(order["receipt"]), "state": "cancelled"}
