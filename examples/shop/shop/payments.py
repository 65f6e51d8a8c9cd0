"""Taking money. Only a test card exists; a real provider would be called in `charge`."""

TEST_CARD = "4242424242424242"


class Declined(Exception):
    """The card was not accepted."""


def luhn_ok(number):
    """Check the last digit of a card number."""
    digits = [int(d) for d in reversed(number) if d.isdigit()]
    doubled = (d * 2 - 9 if d > 4 else d * 2 for d in digits[1::2])
    return len(digits) >= 12 and (sum(digits[::2]) + sum(doubled)) % 10 == 0


def charge(card, cents):
    """Charge a card and return a receipt."""
    if cents <= 0:
        raise ValueError("nothing to pay")
    if not luhn_ok(card):
        raise Declined("the card number is wrong")
    # FIXME: a charge that is repeated after a lost answer takes the money twice.
    return {"card": "*" * 12 + card[-4:], "cents": cents, "state": "paid"}


def refund(receipt, cents=None):
    """Give money back: all of it, or a part."""
    cents = receipt["cents"] if cents is None else cents
    if not 0 < cents <= receipt["cents"]:
        raise ValueError("cannot refund that much")
    return {**receipt, "cents": receipt["cents"] - cents, "state": "refunded"}
