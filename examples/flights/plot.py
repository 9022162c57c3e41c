"""The plot as SVG, drawn without a library."""

from collections.abc import Iterator, Sequence
from xml.sax.saxutils import escape

from examples.flights.summary import Cell, MonthTotals

CELL_WIDTH, CELL_HEIGHT = 34, 22
LEFT, TOP = 60, 64
BARS_HEIGHT = 110
STYLE = 'font-family="sans-serif" font-size="12"'
MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")

#: from this mean delay on a cell has the darkest colour
DARKEST_MINUTES = 45.0
EARLY = (205, 225, 240)
ON_TIME = (250, 247, 240)
LATE = (178, 24, 43)


def draw(cells: Sequence[Cell], months: Sequence[MonthTotals]) -> str:
    carriers = sorted({cell.carrier for cell in cells})
    hours = sorted({cell.hour for cell in cells})
    width = LEFT + CELL_WIDTH * len(hours) + 24
    bars_top = TOP + CELL_HEIGHT * len(carriers) + 70
    height = bars_top + BARS_HEIGHT + 40
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" {STYLE}>',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        _text(LEFT, 24, "Mean departure delay in minutes, by carrier and planned hour", size=16),
        _text(LEFT, 44, "Flights from New York in 2013", colour="#666"),
        *_map(cells, carriers, hours),
        _text(LEFT, bars_top - 14, "Cancelled flights, by month", size=16),
        *_bars(months, bars_top, width - LEFT - 24),
        "</svg>",
    ]
    return "\n".join(lines) + "\n"


def _map(cells: Sequence[Cell], carriers: list[str], hours: list[int]) -> Iterator[str]:
    for row, carrier in enumerate(carriers):
        y = TOP + CELL_HEIGHT * row
        yield _text(LEFT - 8, y + 15, carrier, anchor="end")
    for cell in cells:
        if cell.mean_delay is None:
            continue
        x = LEFT + CELL_WIDTH * hours.index(cell.hour)
        y = TOP + CELL_HEIGHT * carriers.index(cell.carrier)
        title = (
            f"{cell.carrier} at {cell.hour}: {cell.mean_delay:.1f} min, "
            f"{cell.flights} flights, {cell.cancelled} cancelled"
        )
        yield (
            f'<rect x="{x}" y="{y}" width="{CELL_WIDTH - 1}" height="{CELL_HEIGHT - 1}" '
            f'fill="{_colour(cell.mean_delay)}"><title>{escape(title)}</title></rect>'
        )
        dark = cell.mean_delay > DARKEST_MINUTES / 2
        yield _text(
            x + CELL_WIDTH // 2 - 1,
            y + 15,
            str(round(cell.mean_delay)),
            size=10,
            anchor="middle",
            colour="white" if dark else "#333",
        )
    y = TOP + CELL_HEIGHT * len(carriers) + 16
    for column, hour in enumerate(hours):
        x = LEFT + CELL_WIDTH * column + CELL_WIDTH // 2
        yield _text(x, y, str(hour), anchor="middle", colour="#666")


def _bars(months: Sequence[MonthTotals], top: int, width: int) -> Iterator[str]:
    most = max((month.cancelled for month in months), default=0) or 1
    step = width / max(len(months), 1)
    for place, month in enumerate(months):
        bar = round((BARS_HEIGHT - 16) * month.cancelled / most)
        x = round(LEFT + step * place)
        y = top + BARS_HEIGHT - bar
        middle = round(x + step / 2)
        yield (
            f'<rect x="{x + 4}" y="{y}" width="{round(step) - 8}" height="{bar}" fill="#4a7ba6"/>'
        )
        yield _text(middle, y - 4, str(month.cancelled), size=10, anchor="middle", colour="#333")
        name = MONTHS[month.month - 1]
        yield _text(middle, top + BARS_HEIGHT + 16, name, anchor="middle", colour="#666")


def _colour(minutes: float) -> str:
    end = LATE if minutes >= 0 else EARLY
    share = min(abs(minutes) / (DARKEST_MINUTES if minutes >= 0 else 5.0), 1.0)
    mixed = (round(a + (b - a) * share) for a, b in zip(ON_TIME, end, strict=True))
    return "#" + "".join(f"{part:02x}" for part in mixed)


def _text(
    x: int, y: int, text: str, *, size: int = 12, anchor: str = "start", colour: str = "#111"
) -> str:
    return (
        f'<text x="{x}" y="{y}" font-size="{size}" text-anchor="{anchor}" '
        f'fill="{colour}">{escape(text)}</text>'
    )
