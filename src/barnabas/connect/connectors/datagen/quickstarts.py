"""The schemas that `quickstart` names.

Names, keys and, where programs are known to use them, fields are those of Confluent's; values and
all other fields are our own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

Field = Any
"""An Avro type, perhaps with hints for its values."""


@dataclass(slots=True, frozen=True)
class Quickstart:
    schema: Mapping[str, Any]
    key: str


def _hinted(type_: str, **arguments: Any) -> Field:
    return {"type": type_, "arg.properties": arguments}


def _one_of(*values: str) -> Field:
    return _hinted("string", options=list(values))


def _like(pattern: str) -> Field:
    return _hinted("string", regex=pattern)


def _int(low: int, high: int) -> Field:
    """A number from `low` to before `high`."""
    return _hinted("int", range={"min": low, "max": high})


def _long(low: int, high: int) -> Field:
    return _hinted("long", range={"min": low, "max": high})


def _double(low: float, high: float) -> Field:
    return _hinted("double", range={"min": low, "max": high})


def _counter(start: int = 1, step: int = 1, type_: str = "long") -> Field:
    return _hinted(type_, iteration={"start": start, "step": step})


def _numbered(prefix: str, start: int = 1) -> Field:
    return _hinted("string", prefix=prefix, iteration={"start": start})


def _time(step_ms: int = 10) -> Field:
    """A time that moves on with each row."""
    return _counter(1_700_000_000_000, step_ms)


def _record(name: str, /, **fields: Field) -> Field:
    entries = [{"name": field, "type": type_} for field, type_ in fields.items()]
    return {"type": "record", "name": name, "fields": entries}


def _list(items: Field, least: int, most: int) -> Field:
    return {
        "type": "array",
        "items": items,
        "arg.properties": {"length": {"min": least, "max": most + 1}},
    }


def _quickstart(name: str, key: str, /, **fields: Field) -> Quickstart:
    return Quickstart({**_record(name, **fields), "namespace": "ksql"}, key)


_FIRST_NAMES = ("Ada", "Alan", "Barbara", "Edsger", "Frances", "Grace", "Ken", "Leslie", "Radia")
_LAST_NAMES = ("Allen", "Dijkstra", "Hopper", "Lamport", "Liskov", "Lovelace", "Perlman", "Turing")
_CITIES = ("Berlin", "Lagos", "Lima", "London", "Mumbai", "Palo Alto", "Paris", "Tokyo", "Toronto")
_STATES = ("CA", "FL", "IL", "MA", "NY", "OR", "TX", "WA")
_IP = _like("(10|172|192)\\.[1-9][0-9]?\\.[1-9][0-9]?\\.[1-9][0-9]?")
_USER_ID = _like("User_[1-9]")
_EMAIL = _like("[a-z]{4,9}@example\\.(com|net|org)")
_PHONE = _like("[2-9][0-9]{2}-[0-9]{3}-[0-9]{4}")
_PERSON = {"first_name": _one_of(*_FIRST_NAMES), "last_name": _one_of(*_LAST_NAMES)}
_USER = {
    "registertime": _long(1_487_715_775_521, 1_519_273_364_600),
    "userid": _USER_ID,
    "regionid": _like("Region_[1-9]"),
    "gender": _one_of("MALE", "FEMALE", "OTHER"),
}
_STORE_ORDER = {"store_id": _int(1, 10), "store_order_id": _counter(1000, 1, "int")}
_ADDRESS = _record(
    "address",
    city=_like("City_[1-9][0-9]?"),
    state=_like("State_[1-9][0-9]?"),
    zipcode=_long(10_000, 99_999),
)

QUICKSTARTS: Final[Mapping[str, Quickstart]] = {
    "campaign_finance": _quickstart(
        "campaign_finance",
        "candidate_id",
        time=_time(),
        candidate_id=_like("Candidate_[1-9]"),
        party_affiliation=_one_of("DEM", "GRE", "IND", "LIB", "REP"),
        contribution=_int(10, 5000),
    ),
    "clickstream": _quickstart(
        "clickstream",
        "ip",
        ip=_IP,
        userid=_int(-1, 40),
        remote_user=_one_of("-"),
        time=_like("2024-0[1-9]-[12][0-9]T[01][0-9]:[0-5][0-9]:[0-5][0-9]"),
        _time=_time(),
        request=_one_of(
            "GET /index.html HTTP/1.1",
            "GET /images/logo.png HTTP/1.1",
            "GET /site/login.html HTTP/1.1",
            "POST /site/user_status.html HTTP/1.1",
        ),
        status=_one_of("200", "302", "404", "405", "406", "407"),
        bytes=_one_of("278", "1289", "2048", "4006", "4096", "14096"),
        referrer=_one_of("-", "https://example.com/", "https://example.org/search"),
        agent=_one_of(
            "Mozilla/5.0 (X11; Linux x86_64)",
            "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15)",
            "curl/8.5.0",
        ),
    ),
    "clickstream_codes": _quickstart(
        "clickstream_codes",
        "code",
        code=_hinted("int", options=[200, 302, 404, 405, 406, 407]),
        definition=_one_of(
            "Successful", "Redirect", "Page not found", "Method not allowed", "Not acceptable"
        ),
    ),
    "clickstream_users": _quickstart(
        "clickstream_users",
        "user_id",
        user_id=_counter(1, 1, "int"),
        username=_like("[a-z]{3,8}_[0-9]{2}"),
        registered_at=_time(1000),
        **_PERSON,
        city=_one_of(*_CITIES),
        level=_one_of("Gold", "Platinum", "Silver"),
    ),
    "credit_cards": _quickstart(
        "credit_cards",
        "card_id",
        card_id=_counter(),
        card_number=_like("4[0-9]{3}-[0-9]{4}-[0-9]{4}-[0-9]{4}"),
        cvv=_like("[0-9]{3}"),
        expiration_date=_like("(0[1-9]|1[0-2])/(2[6-9]|3[0-5])"),
    ),
    "device_information": _quickstart(
        "device_information",
        "device_ip",
        device_ip=_IP,
        device_name=_like("(laptop|phone|server)-[0-9]{3}"),
        owner=_one_of(*_FIRST_NAMES),
        location=_one_of(*_CITIES),
    ),
    "fleet_mgmt_description": _quickstart(
        "fleet_mgmt_description",
        "vehicle_id",
        vehicle_id=_int(1000, 10_000),
        driver_name=_one_of(*_LAST_NAMES),
        license_plate=_like("[A-Z]{3}-[0-9]{4}"),
    ),
    "fleet_mgmt_location": _quickstart(
        "fleet_mgmt_location",
        "vehicle_id",
        vehicle_id=_int(1000, 10_000),
        location=_record("location", latitude=_double(-90, 90), longitude=_double(-180, 180)),
        ts=_time(),
    ),
    "fleet_mgmt_sensors": _quickstart(
        "fleet_mgmt_sensors",
        "vehicle_id",
        vehicle_id=_int(1000, 10_000),
        engine_temperature=_int(150, 260),
        average_rpm=_int(1800, 5000),
    ),
    "gaming_games": _quickstart(
        "gaming_games",
        "id",
        id=_counter(),
        room_id=_int(1000, 5000),
        started_at=_time(1000),
        title=_one_of("Asteroids", "Chess", "Go", "Pinball", "Snake"),
    ),
    "gaming_player_activity": _quickstart(
        "gaming_player_activity",
        "player_id",
        player_id=_int(1000, 1100),
        game_room_id=_int(1000, 5000),
        points=_int(10, 500),
        coordinates=_record("coordinates", x=_int(0, 1000), y=_int(0, 1000)),
    ),
    "gaming_players": _quickstart(
        "gaming_players",
        "player_id",
        player_id=_counter(1000, 1, "int"),
        player_name=_like("[A-Z][a-z]{3,9}"),
        ip=_IP,
    ),
    "insurance_customer_activity": _quickstart(
        "insurance_customer_activity",
        "activity_id",
        activity_id=_counter(),
        customer_id=_int(1, 1000),
        activity_type=_one_of("branch_visit", "deposit", "mobile_open", "web_open", "withdrawal"),
        propensity_to_churn=_double(0, 1),
        ip_address=_IP,
    ),
    "insurance_customers": _quickstart(
        "insurance_customers",
        "customer_id",
        customer_id=_counter(1, 1, "int"),
        **_PERSON,
        email=_EMAIL,
        gender=_one_of("Female", "Male", "Nonbinary"),
        income=_int(20_000, 250_000),
        fico=_int(400, 850),
    ),
    "insurance_offers": _quickstart(
        "insurance_offers",
        "offer_id",
        offer_id=_counter(1, 1, "int"),
        offer_name=_one_of("new_savings", "no_offer", "platinum_card", "roth_ira"),
        offer_url=_like("https://example\\.com/offers/[0-9]{6}"),
    ),
    "inventory": _quickstart(
        "inventory",
        "id",
        id=_counter(),
        quantity=_int(1, 1000),
        productid=_int(1, 1000),
    ),
    "orders": _quickstart(
        "orders",
        "orderid",
        ordertime=_long(1_487_715_775_521, 1_519_273_364_600),
        orderid=_counter(0, 1, "int"),
        itemid=_like("Item_[1-9][0-9]{0,2}"),
        orderunits=_double(0.1, 10.0),
        address=_ADDRESS,
    ),
    "pageviews": _quickstart(
        "pageviews",
        "viewtime",
        viewtime=_counter(1, 10),
        userid=_USER_ID,
        pageid=_like("Page_[1-9][0-9]?"),
    ),
    "payroll_bonus": _quickstart(
        "payroll_bonus",
        "employee_id",
        employee_id=_int(1000, 2000),
        bonus=_int(1000, 20_000),
    ),
    "payroll_employee": _quickstart(
        "payroll_employee",
        "employee_id",
        employee_id=_counter(1000, 1, "int"),
        **_PERSON,
        age=_int(18, 68),
        ssn=_like("[1-8][0-9]{2}-[0-9]{2}-[0-9]{4}"),
        hourly_rate=_int(15, 90),
        gender=_one_of("Female", "Male", "Nonbinary"),
        email=_EMAIL,
    ),
    "payroll_employee_location": _quickstart(
        "payroll_employee_location",
        "employee_id",
        employee_id=_int(1000, 2000),
        lab=_one_of("Lab 1", "Lab 2", "Lab 3", "Lab 4"),
        department_id=_int(1, 20),
        arrival_date=_int(19_000, 20_000),
    ),
    "pizza_orders": _quickstart(
        "pizza_orders",
        "store_id",
        **_STORE_ORDER,
        coupon_code=_int(1000, 2000),
        date=_int(18_000, 19_000),
        status=_one_of("accepted"),
        order_lines=_list(
            _record(
                "order_line",
                product_id=_int(1, 100),
                category=_one_of("calzone", "dessert", "pizza", "salad", "wings"),
                quantity=_int(1, 6),
                unit_price=_double(2, 30),
                net_price=_double(2, 90),
            ),
            1,
            6,
        ),
    ),
    "pizza_orders_cancelled": _quickstart(
        "pizza_orders_cancelled",
        "store_id",
        **_STORE_ORDER,
        date=_int(18_000, 19_000),
        status=_one_of("cancelled"),
    ),
    "pizza_orders_completed": _quickstart(
        "pizza_orders_completed",
        "store_id",
        **_STORE_ORDER,
        date=_int(18_000, 19_000),
        status=_one_of("completed"),
        rack_time_secs=_int(10, 300),
        order_delivery_time_secs=_int(300, 3600),
    ),
    "product": _quickstart(
        "product",
        "id",
        id=_counter(),
        name=_one_of("backpack", "bicycle", "boots", "kayak", "lamp", "rope", "tent"),
        description=_hinted("string", length={"min": 20, "max": 60}),
        price=_double(1, 500),
    ),
    "purchases": _quickstart(
        "purchases",
        "id",
        id=_counter(),
        item_type=_one_of("bakery", "beverages", "dairy", "fruit", "meat", "vegetables"),
        quantity=_int(1, 20),
        price_per_unit=_double(0.5, 25),
    ),
    "ratings": _quickstart(
        "ratings",
        "rating_id",
        rating_id=_counter(),
        user_id=_int(1, 20),
        stars=_int(1, 6),
        route_id=_int(1, 10_000),
        rating_time=_counter(1, 12),
        channel=_one_of("android", "ios", "ios-test", "web"),
        message=_one_of(
            "airport refurb looks great",
            "is this as good as it gets?",
            "meh",
            "thank you for the most friendly service",
            "why is it so difficult to keep the bathrooms clean?",
            "worst. flight. ever.",
        ),
    ),
    "shoe_clickstream": _quickstart(
        "shoe_clickstream",
        "product_id",
        product_id=_numbered("shoe-"),
        user_id=_like("customer-[0-9]{3}"),
        view_time=_int(10, 120),
        page_url=_like("https://example\\.com/shoes/[0-9]{3}"),
        ip=_IP,
        ts=_time(),
    ),
    "shoe_customers": _quickstart(
        "shoe_customers",
        "id",
        id=_numbered("customer-"),
        **_PERSON,
        email=_EMAIL,
        phone=_PHONE,
        street_address=_like("[1-9][0-9]{0,2} (Elm|Main|Oak) Street"),
        state=_one_of(*_STATES),
        zip_code=_like("[0-9]{5}"),
        country=_one_of("United States"),
        country_code=_one_of("US"),
    ),
    "shoe_orders": _quickstart(
        "shoe_orders",
        "order_id",
        order_id=_counter(1000, 1, "int"),
        product_id=_like("shoe-[0-9]{3}"),
        customer_id=_like("customer-[0-9]{3}"),
        ts=_time(),
    ),
    "shoes": _quickstart(
        "shoes",
        "id",
        id=_numbered("shoe-"),
        brand=_one_of("Alpine", "Marathon", "Meadow", "Summit"),
        name=_like("(Light|Pro|Trail) [A-Z][a-z]{3,6}"),
        sale_price=_int(4995, 19_995),
        rating=_double(1, 5),
    ),
    "siem_logs": _quickstart(
        "siem_logs",
        "hostname",
        hostname=_like("(app|db|web)-[0-9]{2}\\.example\\.com"),
        timestamp=_time(),
        source_ip=_IP,
        destination_ip=_IP,
        severity=_one_of("critical", "high", "low", "medium"),
        event=_one_of("login_failed", "login_succeeded", "malware_found", "port_scan"),
    ),
    "stock_trades": _quickstart(
        "StockTrade",
        "symbol",
        side=_one_of("BUY", "SELL"),
        quantity=_int(1, 5000),
        symbol=_one_of("ZBZX", "ZJZZT", "ZTEST", "ZVV", "ZVZZT", "ZWZZT", "ZXZZT"),
        price=_int(5, 1000),
        account=_one_of("ABC123", "LMN456", "XYZ789"),
        userid=_USER_ID,
    ),
    "stores": _quickstart(
        "stores",
        "store_id",
        store_id=_counter(1, 1, "int"),
        city=_one_of(*_CITIES),
        state=_one_of(*_STATES),
    ),
    "syslog_logs": _quickstart(
        "syslog_logs",
        "host",
        ts=_time(),
        host=_like("host-[0-9]{2}\\.example\\.com"),
        facility=_int(0, 24),
        severity=_int(0, 8),
        process=_one_of("cron", "kernel", "sshd", "systemd"),
        pid=_int(1, 32_768),
        message=_one_of(
            "Accepted publickey for deploy",
            "Connection closed by authenticating user",
            "Started daily cleanup",
            "segfault at 0",
        ),
    ),
    "transactions": _quickstart(
        "transactions",
        "transaction_id",
        transaction_id=_counter(),
        card_id=_long(1, 20),
        user_id=_USER_ID,
        purchase_id=_counter(0),
        store_id=_int(1, 8),
    ),
    "users": _quickstart("users", "userid", **_USER),
    "users_": _quickstart(
        "users",
        "userid",
        **_USER,
        interests=_list(_one_of("Game", "Movies", "News", "Sport", "Travel"), 1, 3),
        contactinfo={
            "type": "map",
            "values": _PHONE,
            "arg.properties": {
                "length": {"min": 1, "max": 3},
                "keys": {"options": ["home", "mobile", "work"]},
            },
        },
    ),
}
