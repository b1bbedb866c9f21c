"""Records as Arrow columns, without an object per record: consume, group by, produce.

It writes 200,000 sales of its own, and their totals. It needs `pip install 'barnabas[arrow]'`.

    python arrow_totals.py localhost:9092 shop-sales shop-totals
"""

import sys

import pyarrow as pa
import pyarrow.compute as pc

from barnabas import Consumer, Producer

ROWS = 200_000


def main(servers: str, sales: str, totals: str, rows: int = ROWS) -> dict[str, int]:
    producer = Producer({"bootstrap.servers": servers, "compression.type": "zstd"})
    producer.produce_arrow(sales, made_up(rows))
    producer.flush()
    total_sales = total(servers, sales, rows)
    producer.produce_arrow(
        totals, pa.table({"key": total_sales["shop"], "value": total_sales["sum"]})
    )
    producer.flush()
    return dict(
        zip(total_sales["shop"].to_pylist(), map(int, total_sales["sum"].to_pylist()), strict=True)
    )


def made_up(rows: int) -> pa.Table:
    """Keys are shops, values are amounts, both as text."""
    numbers = pa.array(range(rows))
    shops = pc.binary_join_element_wise("shop", pc.cast(pc.bit_wise_and(numbers, 7), "string"), "-")
    return pa.table({"key": shops, "value": pc.cast(pc.bit_wise_and(numbers, 1023), "string")})


def total(servers: str, sales: str, rows: int) -> pa.Table:
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": f"{sales}-totals",
            "auto.offset.reset": "earliest",
        }
    )
    consumer.subscribe([sales])
    parts: list[pa.Table] = []
    seen = 0
    while seen < rows:
        batch = consumer.consume_arrow(max_rows=min(100_000, rows - seen), timeout=10)
        seen += batch.num_rows
        parts.append(sums(pa.table({"shop": batch["key"], "amount": amounts(batch["value"])})))
    consumer.close()
    whole = sums(pa.concat_tables(parts).rename_columns(["shop", "amount"]))
    return pa.table(
        {
            "shop": pc.cast(whole["shop"], "string"),
            "sum": pc.cast(whole["amount_sum"], "string"),
        }
    ).sort_by("shop")


def amounts(texts: pa.Array) -> pa.Array:
    return pc.cast(pc.cast(texts, "string"), "int64")


def sums(table: pa.Table) -> pa.Table:
    return table.group_by("shop").aggregate([("amount", "sum")]).select(["shop", "amount_sum"])


if __name__ == "__main__":
    for shop, amount in main(*sys.argv[1:]).items():
        print(shop, amount)
