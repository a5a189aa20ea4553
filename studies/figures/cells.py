"""Figures of architectures as the graphs of their cells."""

from collections.abc import Sequence
from typing import Any

import plotly.graph_objects as go
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from plotly.subplots import make_subplots

from studies.figures.cell_graph import CellGraph
from studies.figures.style import COLOURS, title_lines

OF_OPERATORS = (*COLOURS, "#9a7b1c", "#2a9d9d")
PLAIN = "#8a919b"
CLEAR = 3  # points between an edge and its label, so that the line does not hide underscores
ROW_HEIGHT, UNIT_HEIGHT = 240, 140  # pixels in plotly: smallest height of a row, and height of the distance of nodes
HIDDEN = 8  # size of invisible markers in plotly, which keep labels at this distance


Row = tuple[Sequence[str], Sequence[CellGraph]]  # title parts of an architecture, and its cells


def cells_figure(rows: Sequence[Row]) -> Figure:
    """Return a figure with a row for each architecture: a title above the graphs of its cells."""
    width = max(len(graphs) for _, graphs in rows)
    longest = max(len(graph.nodes) for _, graphs in rows for graph in graphs)
    figure = Figure(figsize=(max(7.5, longest) * width, 2.6 * len(rows)), layout="constrained")
    panels = figure.subplots(len(rows), width, squeeze=False)
    colours = _colours(rows)
    for line, (title, graphs) in zip(panels, rows, strict=True):
        for axes in line:
            axes.axis("off")
        line[0].set_title("\n".join(title_lines(title)), fontsize=9, loc="left")
        for axes, graph in zip(line, graphs, strict=False):
            _draw(axes, graph, colours)
    return figure


def _draw(axes: Axes, graph: CellGraph, colours: dict[str, str]) -> None:
    for index, (_, _, label) in enumerate(graph.edges):
        x, y = graph.curve(index).T
        colour = colours.get(label, PLAIN)
        axes.plot(x, y, color=colour, linewidth=1.4, zorder=1)
        middle = len(x) // 2
        ends = (x[middle + 1], y[middle + 1]), (x[middle], y[middle])
        axes.annotate("", *ends, arrowprops={"arrowstyle": "->", "color": colour})
        text = axes.annotate(label, (x[middle], y[middle]), (0, CLEAR), textcoords="offset points")
        text.set(fontsize=7, color=colour, ha="center", va="bottom")
    for node, name in enumerate(graph.nodes):
        box = {"boxstyle": "round", "facecolor": "white", "edgecolor": PLAIN}
        axes.text(node, 0, name, fontsize=8, ha="center", va="center", bbox=box, zorder=2)
    axes.set_xlim(-0.5, len(graph.nodes) - 0.5)
    axes.set_ylim(*_ends(graph))
    if graph.title:
        axes.text(-0.4, axes.get_ylim()[1], graph.title, fontsize=8, va="top")


def _ends(graph: CellGraph) -> tuple[float, float]:
    """Return the limits of the vertical axis, with room for labels."""
    heights = [graph.curve(index)[:, 1] for index in range(len(graph.edges))]
    low, high = min((y.min() for y in heights), default=0.0), max((y.max() for y in heights), default=0.0)
    return float(low) - 0.3, float(high) + 0.3


def _colours(rows: Sequence[Row]) -> dict[str, str]:
    labels = sorted({label for _, graphs in rows for graph in graphs for _, _, label in graph.edges if label})
    return {label: OF_OPERATORS[index % len(OF_OPERATORS)] for index, label in enumerate(labels)}


def interactive_cells(rows: Sequence[Row]) -> Any:
    """Return the figure of ``cells_figure`` in plotly."""
    width = max(len(graphs) for _, graphs in rows)
    names = ["<br>".join(title_lines(title)) if column == 0 else "" for title, _ in rows for column in range(width)]
    figure = make_subplots(rows=len(rows), cols=width, subplot_titles=names)
    colours = _colours(rows)
    for row, (_, graphs) in enumerate(rows, start=1):
        for column, graph in enumerate(graphs, start=1):
            for index, (_, _, label) in enumerate(graph.edges):
                x, y = graph.curve(index).T
                line = {"color": colours.get(label, PLAIN)}
                text = [label if point == len(x) // 2 else "" for point in range(len(x))]
                side = "bottom center" if y.min() < 0 else "top center"  # away from the nodes' names
                edge = go.Scatter(x=x, y=y, mode="lines+markers+text", line=line, text=text, textposition=side)
                edge.update(marker={"size": HIDDEN, "opacity": 0}, textfont={"size": 10, "color": line["color"]})
                figure.add_trace(edge.update(hoverinfo="skip"), row=row, col=column)
            nodes = go.Scatter(
                x=list(range(len(graph.nodes))),
                y=[0] * len(graph.nodes),
                mode="markers+text",
                marker={"size": 16, "color": PLAIN},
                text=[name.replace("\n", "<br>") for name in graph.nodes],
                textposition="bottom center",
            )
            figure.add_trace(nodes, row=row, col=column)
            figure.update_yaxes(range=_ends(graph), row=row, col=column)
    figure.update_xaxes(visible=False).update_yaxes(visible=False)
    figure.update_traces(cliponaxis=False)
    figure.update_annotations(x=0, xanchor="left", align="left", font_size=13)
    for row, (_, graphs) in enumerate(rows, start=1):
        for column, graph in enumerate(graphs, start=1):
            corner = {"x": -0.4, "y": _ends(graph)[1], "xanchor": "left", "yanchor": "top"}
            figure.add_annotation(text=graph.title, showarrow=False, font_size=12, **corner, row=row, col=column)
    tallest = max(high - low for _, graphs in rows for low, high in map(_ends, graphs))
    height = max(ROW_HEIGHT, UNIT_HEIGHT * tallest) * len(rows)
    return figure.update_layout(template="plotly_white", showlegend=False, height=height)
