import { type Camera, readableScale, type ViewSize } from "./graph-camera.ts";
import { type GraphLayout, type PlacedBlock, type Point, rowHeight } from "./lay-out-graph.ts";
import type { ShownNode, ShownPart } from "./shown-part.ts";
import type { NodeChange } from "../../contract/jobs/model-diff.ts";
import { formatBytes } from "../../contract/text/format-bytes.ts";
import { sqnrThresholdsDb } from "../shared/figures.ts";
import type { Palette } from "../shared/palette.ts";

export interface Drawing {
  readonly part: ShownPart;
  readonly layout: GraphLayout;
  readonly palette: Palette;
  /** Of each node. */
  readonly tones: readonly Tone[];
  /** What the compression changed, of each node. */
  readonly changes: readonly (NodeChange | undefined)[];
  /** Position of the selected node. */
  readonly selected: number | undefined;
}

const rowInset = 4;
const edgeOfTone = 6;
const textInset = 14;
const wordGap = 8;
const corner = 6;
/** Of inputs and outputs. */
const roundCorner = 14;

type Context = CanvasRenderingContext2D;

/** Draws the part of a graph that is in view. */
export function drawGraph(context: Context, drawing: Drawing, camera: Camera, view: ViewSize) {
  const { layout, palette } = drawing;
  const { y, scale } = camera;
  beginDrawing(context, camera, view);
  const [top, bottom] = [y, y + view.height / scale];
  const { segments } = layout;
  const visible = listVisible(segments, top, bottom);
  context.lineWidth = Math.max(1, 1 / scale);
  context.strokeStyle = palette.control;
  for (const { edges } of visible) {
    for (const points of edges) drawEdge(context, points, top, bottom);
  }
  for (const block of visible.flatMap(({ blocks }) => blocks)) {
    const isInView = block.y <= bottom && block.y + block.height >= top;
    if (isInView) drawBlock(context, drawing, block, scale);
  }
}

function beginDrawing(context: Context, { x, y, scale }: Camera, view: ViewSize): void {
  const ratio = devicePixelRatio;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, view.width, view.height);
  context.translate(view.width / 2, 0);
  context.scale(scale, scale);
  context.translate(-x, -y);
}

function listVisible(segments: GraphLayout["segments"], top: number, bottom: number) {
  const start = findFirstBelow(segments, top);
  const end = segments.findIndex((segment, index) => index >= start && segment.top > bottom);
  return segments.slice(start, end === -1 ? undefined : end);
}

/** The first segment that ends below a height; they are sorted. */
function findFirstBelow(segments: GraphLayout["segments"], top: number): number {
  let [low, high] = [0, segments.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((segments[middle]?.bottom ?? 0) < top) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** A curve through the points of an edge, the ends upright. */
function drawEdge(context: Context, points: readonly Point[], top: number, bottom: number) {
  const [first, ...rest] = points;
  const last = rest.at(-1);
  if (first === undefined || last === undefined) return;
  if (Math.max(first.y, last.y) < top || Math.min(first.y, last.y) > bottom) return;
  context.beginPath();
  context.moveTo(first.x, first.y);
  let from = first;
  for (const to of rest) {
    const middle = (from.y + to.y) / 2;
    context.bezierCurveTo(from.x, middle, to.x, middle, to.x, to.y);
    from = to;
  }
  context.stroke();
}

function drawBlock(context: Context, drawing: Drawing, block: PlacedBlock, scale: number) {
  const { palette, part, tones, selected } = drawing;
  const left = block.x - block.width / 2;
  const isEnd = part.nodes[block.nodes[0] ?? -1]?.kind !== "node";
  context.fillStyle = isEnd ? palette.sunken : palette.surface;
  context.strokeStyle = palette.control;
  context.beginPath();
  context.roundRect(left, block.y, block.width, block.height, isEnd ? roundCorner : corner);
  context.fill();
  context.stroke();
  for (const [row, node] of block.nodes.entries()) {
    const top = block.y + rowInset + row * rowHeight;
    const tone = tones[node] ?? "none";
    if (node === selected) {
      context.fillStyle = palette.selected;
      context.fillRect(left + 1, top, block.width - 2, rowHeight);
    }
    context.fillStyle = isEnd ? palette.sunken : toneColour(palette, tone);
    if (scale < readableScale) {
      if (tone !== "none") context.fillRect(left + 2, top + 1, block.width - 4, rowHeight - 2);
    } else {
      // What needs a person has a wider edge too, not only a colour.
      const width = tone === "bad" ? 2 * edgeOfTone : edgeOfTone;
      context.fillRect(left + rowInset, top + 2, width, rowHeight - 4);
      const start = left + textInset + width - edgeOfTone;
      drawLabel(context, drawing, node, {
        left: start,
        top,
        width: block.x + block.width / 2 - start,
      });
    }
    if (node === selected) drawFocus(context, palette, { left, top, width: block.width });
  }
}

/** The operator, or the name of an input or output, and what the first output is, as far as it fits. */
function drawLabel(context: Context, drawing: Drawing, node: number, box: RowBox) {
  const { part, palette, tones, changes } = drawing;
  const shown = part.nodes[node];
  if (shown === undefined) throw new RangeError("A row stands for no node");
  const middle = box.top + rowHeight / 2;
  context.font = "12px Inter, system-ui, sans-serif";
  context.textBaseline = "middle";
  const how = changes[node]?.how;
  const mark = how === undefined ? "" : `${changeMarks[how]} `;
  const label = fitText(context, mark + labelOf(shown), box.width - textInset);
  const isQuiet = shown.kind === "node" && tones[node] === "none" && mark === "";
  context.fillStyle = isQuiet ? palette["text-3"] : palette.text;
  context.fillText(label, box.left, middle);
  const shape = describeShape(shown, part);
  const room = box.width - context.measureText(label).width - textInset - wordGap;
  if (context.measureText(shape).width > room) return;
  context.fillStyle = palette["text-3"];
  context.textAlign = "right";
  context.fillText(shape, box.left + box.width - textInset, middle);
  context.textAlign = "left";
}

/** Before the operators of nodes that the compression changed. */
const changeMarks: Readonly<Record<NodeChange["how"], string>> = {
  added: "+",
  removed: "−",
  changed: "≠",
};

function labelOf({ kind, name, opType, subgraphs }: ShownNode): string {
  if (kind !== "node") return name;
  return subgraphs.length > 0 ? `${opType} ▸` : opType;
}

function fitText(context: Context, text: string, width: number): string {
  let fitting = text.slice(0, 40);
  while (fitting.length > 1 && context.measureText(fitting).width > width) {
    fitting = `${fitting.slice(0, -2)}…`;
  }
  return fitting;
}

/** Longer names of dimensions are made by programs. */
const longestDimension = 8;

/** Dimensions of what a node gives first, and of what leads to an output. */
function describeShape({ gives, takes }: ShownNode, { values }: ShownPart): string {
  const { value } = gives[0] ?? takes[0] ?? {};
  const type = value === undefined ? undefined : values[value]?.type;
  const dims = /\[(?<dims>.*)\]$/.exec(type ?? "")?.groups?.["dims"];
  if (dims === undefined) return "";
  if (dims === "") return "scalar";
  return dims
    .split(",")
    .map((size) => (size.length > longestDimension ? "?" : size))
    .join(" × ");
}

interface RowBox {
  readonly left: number;
  readonly top: number;
  readonly width: number;
}

function drawFocus(context: Context, palette: Palette, { left, top, width }: RowBox) {
  context.save();
  context.strokeStyle = palette.focus;
  context.lineWidth *= 2;
  context.strokeRect(left, top, width, rowHeight);
  context.restore();
}

/** The node at a point of the drawing. */
export function findNodeAt({ segments }: GraphLayout, { x, y }: Point): number | undefined {
  for (let index = findFirstBelow(segments, y); index < segments.length; index++) {
    const segment = segments[index];
    if (segment === undefined || segment.top > y) return undefined;
    const block = segment.blocks.find(
      (each) => Math.abs(x - each.x) <= each.width / 2 && y >= each.y && y <= each.y + each.height,
    );
    const row = block && Math.floor((y - block.y - rowInset) / rowHeight);
    if (block !== undefined) return block.nodes[Math.max(0, row ?? 0)] ?? block.nodes.at(-1);
  }
  return undefined;
}

/** Where the row of a node is: the middle of its top. */
export function findRow({ segments }: GraphLayout, node: number): Point | undefined {
  for (const { blocks } of segments) {
    for (const { x, y, nodes } of blocks) {
      const row = nodes.indexOf(node);
      if (row !== -1) return { x, y: y + rowInset + row * rowHeight };
    }
  }
  return undefined;
}

/** What nodes are coloured by. */
export type ColourMode = "error" | "bytes" | "change" | "difference";

/** Names of tokens; `none` for nodes without a weight. */
export type Tone = "bad" | "warn" | "work" | "better" | "wait" | "none";

/** What is known of a node, from its weights. */
export interface NodeFacts {
  /** Of the original's weights. */
  readonly bytes: number;
  /** Of the worst weight; undefined where none has an error. */
  readonly sqnrDb: number | undefined;
  readonly isChanged: boolean;
  readonly hasWeights: boolean;
}

const noFacts: NodeFacts = { bytes: 0, sqnrDb: undefined, isChanged: false, hasWeights: false };

export function listNodeFacts({
  nodes,
  weights,
}: Pick<ShownPart, "nodes" | "weights">): NodeFacts[] {
  return nodes.map((node) => {
    if (node.weights.length === 0) return noFacts;
    const own = node.weights.flatMap((position) => weights[position] ?? []);
    const errors = own.flatMap(({ sqnrDb }) => sqnrDb ?? []);
    return {
      bytes: own.reduce((sum, { originalBytes }) => sum + originalBytes, 0),
      sqnrDb: errors.length === 0 ? undefined : Math.min(...errors),
      isChanged: own.some(({ form }) => form !== null),
      hasWeights: true,
    };
  });
}

/** Shares of the largest node's bytes from which colours change. */
const byteShares = { most: 0.5, much: 0.1 } as const;

/** The colour of a node; `mostBytes` are those of the largest node. */
export function findTone(
  mode: Exclude<ColourMode, "difference">,
  facts: NodeFacts,
  mostBytes: number,
): Tone {
  if (!facts.hasWeights) return "none";
  if (mode === "change") return facts.isChanged ? "work" : "wait";
  if (mode === "bytes") {
    if (facts.bytes >= byteShares.most * mostBytes) return "bad";
    return facts.bytes >= byteShares.much * mostBytes ? "warn" : "wait";
  }
  if (facts.sqnrDb === undefined) return "wait";
  if (facts.sqnrDb < sqnrThresholdsDb.bad) return "bad";
  return facts.sqnrDb < sqnrThresholdsDb.warn ? "warn" : "work";
}

/** Of nodes by what the compression did to them. */
export const changeTones = {
  added: "better",
  removed: "bad",
  changed: "warn",
  same: "none",
} as const satisfies Record<NodeChange["how"] | "same", Tone>;

/** What the colours mean, worst first. */
export function listLegend(mode: ColourMode, mostBytes: number): [Tone, string][] {
  if (mode === "difference") {
    return [
      [changeTones.added, "+ added"],
      [changeTones.removed, "− removed"],
      [changeTones.changed, "≠ changed"],
      [changeTones.same, "same"],
    ];
  }
  const legends: Readonly<Record<Exclude<ColourMode, "difference">, [Tone, string][]>> = {
    error: [
      ["bad", `below ${sqnrThresholdsDb.bad} dB`],
      ["warn", `below ${sqnrThresholdsDb.warn} dB`],
      ["work", `${sqnrThresholdsDb.warn} dB and more`],
      ["wait", "left alone"],
    ],
    bytes: [
      ["bad", `from ${formatBytes(byteShares.most * mostBytes)}`],
      ["warn", `from ${formatBytes(byteShares.much * mostBytes)}`],
      ["wait", "smaller"],
    ],
    change: [
      ["work", "changed"],
      ["wait", "left alone"],
    ],
  };
  return [...legends[mode], ["none", "no weight"]];
}

export function toneColour(palette: Palette, tone: Tone): string {
  return tone === "none" ? palette.sunken : palette[tone];
}
