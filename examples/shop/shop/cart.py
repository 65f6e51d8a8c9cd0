"""A cart: counts of products, and what they cost together."""

from shop import catalogue

MAX_PIECES = 99
FREE_SHIPPING_CENTS = 5_000
SHIPPING_CENTS = 490


class Cart:
    def __init__(self, products):
        self.products = products
        self.counts = {}

    def add(self, code, count=1):
        if count < 1:
            raise ValueError("count must be at least 1")
        catalogue.price_cents(self.products, code)
        total = self.counts.get(code, 0) + count
        if total > MAX_PIECES:
            raise ValueError(f"at most {MAX_PIECES} pieces of one product")
        if not catalogue.in_stock(self.products, code, total):
            raise ValueError(f"not enough {code} in stock")
        self.counts[code] = total

    def remove(self, code):
        self.counts.pop(code, None)

    def goods_cents(self):
        return sum(catalogue.price_cents(self.products, c) * n for c, n in self.counts.items())

    def shipping_cents(self):
        goods = self.goods_cents()
        return 0 if goods == 0 or goods >= FREE_SHIPPING_CENTS else SHIPPING_CENTS

    def total_cents(self):
        # TODO: no vouchers and no gift cards yet.
        return self.goods_cents() + self.shipping_cents()
