"""Generates the raw data of the shop: six files, the same bytes each time.

    python generate.py          (from anywhere; writes beside this file)

The data is what a shop's loader drops into a landing zone, with what makes such data hard to
read: orders and customers that arrive again when they change, payments that arrive twice, rows
that arrive days late, status and currency spelled in many ways, rates that nobody publishes at
weekends, lines of zero pieces, items of orders that never came, and carts that were never priced.
Standard library only. The files are kept in git; run this only to change the data.
"""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

HERE = Path(__file__).resolve().parent
SEED = 20260630

FIRST_DAY = date(2026, 1, 1)
LAST_DAY = date(2026, 6, 30)
DAYS = (LAST_DAY - FIRST_DAY).days + 1

CUSTOMERS = 420
ORDERS = 1200
VISITS = 360

# country, currency, weight
COUNTRIES = [
    ("US", "USD", 40),
    ("CA", "CAD", 8),
    ("GB", "GBP", 16),
    ("DE", "EUR", 14),
    ("FR", "EUR", 10),
    ("ES", "EUR", 5),
    ("JP", "JPY", 7),
]
CURRENCY = {country: currency for country, currency, _ in COUNTRIES}
USD_RATE = {"USD": 1.0, "EUR": 1.09, "GBP": 1.27, "CAD": 0.73, "JPY": 0.0066}
PRICE_FACTOR = {"USD": 1.0, "EUR": 0.95, "GBP": 0.82, "CAD": 1.35, "JPY": 150.0}

SKUS = [
    ("TEA-GREEN-100", 9.5),
    ("TEA-BLACK-100", 7.9),
    ("TEA-OOLONG-050", 14.0),
    ("TEA-CHAI-100", 8.4),
    ("POT-CERAMIC", 38.0),
    ("POT-IRON", 74.5),
    ("CUP-GLASS-2", 18.9),
    ("KETTLE-GOOSE", 119.0),
    ("SCALE-MINI", 29.0),
    ("GIFT-BOX", 4.5),
]
CHANNELS = ["web", "web", "web", "app", "app", "marketplace"]
DISCOUNT_CODES = ["WELCOME10", "SPRING", "STAFF", "TEATIME"]
METHODS = ["card", "card", "card", "paypal", "bank_transfer", "gift_card"]
STATUS_SPELLINGS = {
    "completed": ["completed", "completed", "Completed", "COMPLETE", "completed "],
    "shipped": ["shipped", "Shipped", "in transit"],
    "pending": ["pending", "new"],
    "cancelled": ["cancelled", "canceled", "Cancelled"],
    "returned": ["returned", "refunded"],
}

FIRST_NAMES = [
    "Ada",
    "Bo",
    "Chen",
    "Dora",
    "Emil",
    "Fatma",
    "Goran",
    "Hana",
    "Ivo",
    "Jun",
    "Kira",
    "Liam",
    "Mina",
    "Noor",
    "Otto",
    "Pia",
]
LAST_NAMES = [
    "Abe",
    "Brandt",
    "Costa",
    "Dubois",
    "Evans",
    "Fischer",
    "Garcia",
    "Ito",
    "Jones",
    "Keller",
    "Lopez",
    "Martin",
]

CITIES = {
    "US": ["Austin", "Boston", "Denver"],
    "CA": ["Toronto", "Montreal"],
    "GB": ["London", "Leeds"],
    "DE": ["Berlin", "Hamburg"],
    "FR": ["Paris", "Lyon"],
    "ES": ["Madrid"],
    "JP": ["Tokyo", "Osaka"],
}
PAGES = ["/", "/tea", "/pots", "/sale", "/product/tea-green-100", "/product/pot-iron"]
CAMPAIGNS = [("newsletter", "june_tea"), ("search", "brand"), ("social", "spring_sale")]

Row = dict[str, object]


def money(value: float | Decimal, currency: str) -> Decimal:
    """Rounds an amount to what the currency has: two decimals, none for yen."""
    unit = Decimal(1) if currency == "JPY" else Decimal("0.01")
    return Decimal(str(value)).quantize(unit, ROUND_HALF_UP)


def moment(rng: random.Random, day: date) -> datetime:
    """Gives a second of the day, in shop hours more often than at night."""
    hour = min(23, max(0, round(rng.gauss(15, 4))))
    return datetime(day.year, day.month, day.day, hour, rng.randrange(60), rng.randrange(60))


def arrival(rng: random.Random, happened: datetime) -> datetime:
    """Gives when the loader brought a row: that night, or days later for one in twenty."""
    days = rng.choice([3, 5, 9]) if rng.random() < 0.05 else 1
    night = datetime.combine(happened.date() + timedelta(days=days), datetime.min.time())
    return night + timedelta(hours=2, seconds=rng.randrange(1800))


def customers(rng: random.Random) -> list[Row]:
    """Makes the customers, some of them more than once because they changed."""
    rows: list[Row] = []
    for customer_id in range(1, CUSTOMERS + 1):
        country = rng.choices([c for c, _, _ in COUNTRIES], [w for _, _, w in COUNTRIES])[0]
        first, last = rng.choice(FIRST_NAMES), rng.choice(LAST_NAMES)
        signup = moment(rng, FIRST_DAY + timedelta(days=int(DAYS * rng.random() ** 1.6)))
        email = f"{first}.{last}{customer_id}@example.{'com' if country == 'US' else 'org'}"
        row: Row = {
            "customer_id": customer_id,
            "email": email if rng.random() < 0.5 else email.lower(),
            "full_name": f"{first} {last}",
            "phone": (
                f"+{rng.randrange(1, 99)} ({rng.randrange(100, 999)}) {rng.randrange(10**6, 10**7)}"
                if rng.random() < 0.8
                else None
            ),
            "country_code": country if rng.random() < 0.97 else None,
            "signed_up_at": signup,
            "marketing_opt_in": rng.random() < 0.6,
            "referrer_customer_id": (
                rng.randrange(1, customer_id) if customer_id > 20 and rng.random() < 0.25 else None
            ),
            "updated_at": signup,
            "_loaded_at": arrival(rng, signup),
        }
        rows.append(row)
        if rng.random() < 0.12:
            updated = signup + timedelta(days=rng.randrange(3, 40), minutes=rng.randrange(600))
            changed = dict(row)
            changed["updated_at"] = updated
            changed["_loaded_at"] = arrival(rng, updated)
            changed["marketing_opt_in"] = not row["marketing_opt_in"]
            if rng.random() < 0.4:
                changed["email"] = f"{last}.{first}{customer_id}@example.net".lower()
            if updated.date() <= LAST_DAY:
                rows.append(changed)
    return rows


def orders_items_payments(
    rng: random.Random, buyers: Sequence[Row]
) -> tuple[list[Row], list[Row], list[Row]]:
    """Makes the orders with their items and payments; totals add up unless the cart was dropped."""
    first_rows: dict[object, Row] = {}
    for row in buyers:
        first_rows.setdefault(row["customer_id"], row)
    people = list(first_rows.values())
    # A shop lives on its regulars: a few buy often, many once, some never.
    weights = [1 / (1 + rng.randrange(12)) for _ in people]

    orders: list[Row] = []
    items: list[Row] = []
    payments: list[Row] = []
    for order_id in range(10_001, 10_001 + ORDERS):
        buyer = rng.choices(people, weights)[0]
        signup = buyer["signed_up_at"]
        assert isinstance(signup, datetime)
        span = (LAST_DAY - signup.date()).days
        ordered = moment(rng, signup.date() + timedelta(days=rng.randrange(span + 1)))
        ordered = max(ordered, signup + timedelta(minutes=3))
        country = str(buyer["country_code"] or "US")
        if rng.random() < 0.04:
            country = rng.choice([c for c, _, _ in COUNTRIES])
        currency = CURRENCY[country]

        total = Decimal(0)
        for sku, price in rng.sample(SKUS, rng.choices([1, 2, 3, 4], [40, 32, 18, 10])[0]):
            qty = rng.choices([1, 2, 3, 6], [60, 25, 10, 5])[0]
            unit_price = money(price * PRICE_FACTOR[currency], currency)
            discount = rng.choice([None, None, None, None, "0.1000", "0.2500"])
            if discount is not None:
                net = money(qty * unit_price * (1 - Decimal(discount)), currency)
            else:
                net = money(qty * unit_price, currency)
            total += net
            items.append(
                {
                    "order_item_id": len(items) + 1,
                    "order_id": order_id,
                    "sku": sku,
                    # A scanner that hiccups writes a zero line: noise to be cleaned.
                    "qty": qty,
                    "unit_price": unit_price,
                    "discount_pct": discount,
                    "is_gift": sku == "GIFT-BOX" or rng.random() < 0.05,
                    "_loaded_at": arrival(rng, ordered),
                }
            )
            if rng.random() < 0.01:
                items.append({**items[-1], "order_item_id": len(items) + 1, "qty": 0})

        age = (LAST_DAY - ordered.date()).days
        fate = rng.random()
        if fate < 0.07:
            status = "cancelled"
        elif fate < 0.12:
            status = "returned"
        elif age < 3:
            status = "pending"
        elif age < 8:
            status = "shipped"
        else:
            status = "completed"
        unpriced = status == "cancelled" and rng.random() < 0.5
        code = rng.choice(DISCOUNT_CODES) if ordered.month <= 3 and rng.random() < 0.2 else None
        loaded = arrival(rng, ordered)
        row = {
            "order_id": order_id,
            "customer_id": buyer["customer_id"],
            "ordered_at": ordered,
            "status": rng.choice(STATUS_SPELLINGS[status]),
            "currency": currency if rng.random() < 0.95 else currency.lower() + " ",
            "order_total": None if unpriced else total,
            "legacy_discount_code": " " if code is None and rng.random() < 0.02 else code,
            "channel": rng.choice(CHANNELS),
            "country_code": country,
            "_loaded_at": loaded,
        }
        if rng.random() < 0.06 and status in ("completed", "shipped", "returned"):
            # The same order came first as pending and again when its status moved.
            orders.append({**row, "status": "pending"})
            row["_loaded_at"] = loaded + timedelta(days=rng.randrange(1, 6))
        orders.append(row)

        if unpriced:
            continue
        paid_at = ordered + timedelta(minutes=rng.randrange(1, 90))
        method = rng.choice(METHODS)

        def pay(
            amount: Decimal,
            how: str,
            state: str,
            when: datetime,
            for_order: int = order_id,
            money_of: str = currency,
        ) -> None:
            payment: Row = {
                "payment_id": f"pay_{len(payments) + 1:05d}",
                "order_id": for_order,
                "method": how,
                "amount": amount,
                "currency": money_of,
                "status": state,
                "processed_at": when,
                "_loaded_at": arrival(rng, when),
            }
            payments.append(payment)

        if rng.random() < 0.05:
            pay(total, method, "failed", paid_at)
            paid_at += timedelta(minutes=7)
        if status == "cancelled":
            continue
        if status == "pending" and rng.random() < 0.5:
            continue
        if rng.random() < 0.08:
            part = money(total * Decimal("0.4"), currency)
            pay(part, "gift_card", "succeeded", paid_at)
            pay(total - part, "card", "succeeded", paid_at)
        else:
            pay(total, method, "succeeded", paid_at)
        if status == "returned":
            pay(
                total,
                method,
                "refunded",
                paid_at + timedelta(days=rng.randrange(3, 15)),
            )

    # Items of orders that never came, and payments that the provider sent twice.
    for number in range(12):
        items.append(
            {
                **rng.choice(items),
                "order_item_id": len(items) + 1,
                "order_id": 90_001 + number,
            }
        )
    for payment in rng.sample(payments, 25):
        payments.append(dict(payment))
    orders.sort(key=lambda r: (str(r["_loaded_at"]), str(r["order_id"])))
    return orders, items, payments


def fx_rates(rng: random.Random) -> list[Row]:
    """Makes a day's rate for each currency: a walk, without a rate at weekends."""
    rows: list[Row] = []
    rates = dict(USD_RATE)
    for offset in range(DAYS):
        day = FIRST_DAY + timedelta(days=offset)
        for currency in sorted(rates):
            if currency != "USD":
                rates[currency] *= 1 + rng.gauss(0, 0.003)
            # The first day always has a rate, so that there is one to carry forward.
            published = currency == "USD" or offset == 0 or day.weekday() < 5
            rows.append(
                {
                    "rate_date": day.isoformat(),
                    "currency": currency,
                    "usd_rate": f"{rates[currency]:.6f}" if published else None,
                    "_loaded_at": datetime.combine(day, datetime.min.time()) + timedelta(hours=17),
                }
            )
    return rows


def events(rng: random.Random, visitors: Sequence[Row]) -> list[Row]:
    """Makes the web events, in batches as the tracker sends them: one line a batch."""
    people = [row for row in visitors if row["updated_at"] == row["signed_up_at"]]
    rows: list[Row] = []
    number = 0
    for visit in range(VISITS):
        person = rng.choice(people)
        signup = person["signed_up_at"]
        assert isinstance(signup, datetime)
        country = str(person["country_code"] or "US")
        day = signup.date() + timedelta(days=rng.randrange((LAST_DAY - signup.date()).days + 1))
        clock = moment(rng, day)
        device = {
            "os": rng.choice(["ios", "android", "windows", "macos"]),
            "browser": rng.choice(["safari", "chrome", "firefox", None]),
            "geo": {"country": country, "city": rng.choice(CITIES[country])},
        }
        names = ["page_view"] * rng.randrange(1, 5)
        if rng.random() < 0.5:
            names.append("add_to_cart")
            if rng.random() < 0.6:
                names.append("checkout")
                if rng.random() < 0.7:
                    names.append("purchase")
        burst: list[Row] = []
        for name in names:
            number += 1
            burst.append(
                {
                    "event_id": f"ev_{number:05d}",
                    "occurred_at": clock.isoformat(),
                    "name": name,
                    "page": rng.choice(PAGES) if name == "page_view" else "/checkout",
                    "value": round(rng.uniform(5, 150), 2) if name == "purchase" else None,
                }
            )
            # Now and then a visitor goes away and comes back within one batch: two sessions.
            away = rng.random() < 0.05
            clock += timedelta(minutes=rng.randrange(45, 120) if away else rng.randrange(1, 9))
        source = rng.choice([None, *CAMPAIGNS])
        context: Row = {"ab": rng.choice(["a", "b"])}
        if source is not None:
            context["utm"] = {"source": source[0], "campaign": source[1]}
        rows.append(
            {
                "batch_id": f"batch_{visit + 1:04d}",
                "customer_id": person["customer_id"] if rng.random() < 0.8 else None,
                "visitor_id": f"visitor_{person['customer_id']:04d}",
                "received_at": (clock + timedelta(seconds=20)).isoformat(),
                "device": device,
                "events": burst,
                "tags": rng.sample(["promo", "returning", "beta", "b2b"], rng.randrange(3)),
                "context": json.dumps(context, separators=(",", ":")),
            }
        )
    rows.sort(key=lambda r: str(r["received_at"]))
    return rows


def text(value: object) -> str:
    """Writes one CSV value: nothing for null, true and false, seconds without a zone."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, datetime):
        return value.strftime("%Y-%m-%d %H:%M:%S")
    return str(value)


def write_csv(name: str, rows: Sequence[Mapping[str, object]]) -> None:
    """Writes rows beside this file, header first."""
    with (HERE / f"{name}.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(rows[0])
        writer.writerows([text(value) for value in row.values()] for row in rows)


def write_json_lines(name: str, rows: Iterable[Mapping[str, object]]) -> None:
    """Writes rows beside this file, one JSON object a line."""
    lines = (json.dumps(row, separators=(",", ":"), default=text) for row in rows)
    (HERE / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Writes the six files."""
    rng = random.Random(SEED)
    people = customers(rng)
    orders, items, payments = orders_items_payments(rng, people)
    write_csv("raw_customers", people)
    write_csv("raw_orders", orders)
    write_csv("raw_order_items", items)
    write_csv("raw_payments", payments)
    write_csv("fx_rates", fx_rates(rng))
    write_json_lines("events", events(rng, people))


if __name__ == "__main__":
    main()
