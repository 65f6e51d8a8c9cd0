"""What can be bought. Prices are in cents, so that sums are exact."""

import json
from pathlib import Path

DATA = Path(__file__).parent.parent / "data" / "catalogue.json"


class UnknownProduct(KeyError):
    """The catalogue has no product of this code."""


def load(path=DATA):
    """Return the products by their code."""
    products = json.loads(Path(path).read_text(encoding="utf-8"))
    return {product["code"]: product for product in products}


def price_cents(products, code):
    if code not in products:
        raise UnknownProduct(code)
    return products[code]["cents"]


def in_stock(products, code, count):
    # TODO: stock is read once; two orders at the same time can both take the last piece.
    return products.get(code, {}).get("stock", 0) >= count


def search(products, text):
    """Products whose name contains the text, cheapest first."""
    found = [p for p in products.values() if text.lower() in p["name"].lower()]
    return sorted(found, key=lambda p: p["cents"])
