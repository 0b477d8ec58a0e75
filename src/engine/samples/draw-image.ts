import { fontGrid, glyphLines, writeLine } from "./stroke-font.ts";

/** Planes of red, green and blue, one after the other, 0 to 1. */
interface Canvas {
  readonly width: number;
  readonly height: number;
  readonly pixels: Float32Array;
}

type Random = () => number;
type Color = readonly [red: number, green: number, blue: number];

/** What a picture shows, in the order of seeds. A page is turned by quarters. */
const scenes = [
  { background: "page", text: true, quarters: 0 },
  { background: "photograph", text: true, quarters: 0 },
  { background: "page", text: true, quarters: 2 },
  { background: "photograph", text: false, quarters: 0 },
  { background: "page", text: true, quarters: 1 },
  { background: "photograph", text: true, quarters: 0 },
  { background: "tinted page", text: true, quarters: 0 },
  { background: "page", text: true, quarters: 3 },
] as const;

/** A line of text takes a picture that is not higher than that and at least twice as wide. */
export const maxLineHeight = 64;

interface ImageSize {
  readonly width: number;
  readonly height: number;
  /** Whether the model expects bright pictures, as readers of documents do. */
  readonly bright: boolean;
  /** Whether single lines are upside down where pages are turned, and not upright. */
  readonly turnsLines: boolean;
}

/**
 * Draws text on pages and photographs. Photographs are "dead leaves": discs that cover each other,
 * of sizes with a power law, over noise whose amplitude falls with its frequency; their spectra and
 * edges are those of natural images (Lee, Mumford and Huang, 2001).
 */
export function drawImage(
  { width, height, bright, turnsLines }: ImageSize,
  seed: number,
  random: Random,
): Float32Array {
  const scene = scenes[seed % scenes.length] ?? scenes[0];
  const isLine = height <= maxLineHeight && width >= 2 * height;
  const quarters = isLine ? turnLine(scene.quarters, turnsLines) : scene.quarters;
  const [w, h] = quarters % 2 === 1 ? [height, width] : [width, height];
  const canvas = { width: w, height: h, pixels: new Float32Array(3 * w * h) };
  const isPage = scene.background !== "photograph" || (bright && !isLine);
  const isDark = scene.background === "tinted page" && random() < 0.5;
  if (isPage)
    fillPage(canvas, pageColor(scene.background === "tinted page", isDark, random), random);
  else fillPhotograph(canvas, random);
  if (isLine) writeSingleLine(canvas, { isDark: isDark || !isPage }, random);
  else if (scene.text || bright) writeLines(canvas, { isDark: isDark || !isPage }, random);
  addNoise(canvas, 0.01 + 0.02 * random(), random);
  return turn(canvas, quarters);
}

/** Quarters of a turn of a line, from those of a page. */
function turnLine(quarters: number, turnsLines: boolean): 0 | 2 {
  return turnsLines && quarters > 0 ? 2 : 0;
}

function pageColor(isTinted: boolean, isDark: boolean, random: Random): Color {
  const level = isDark ? 0.1 + 0.25 * random() : 0.75 + 0.23 * random();
  const tint = isTinted ? 0.25 : 0.04;
  const channel = () => Math.min(1, Math.max(0, level + tint * (random() - 0.6)));
  return [channel(), channel(), channel()];
}

/** Paper under uneven light. */
function fillPage({ width, height, pixels }: Canvas, color: Color, random: Random): void {
  const [slopeX, slopeY] = [0.1 * (random() - 0.5), 0.1 * (random() - 0.5)];
  for (const [channel, level] of color.entries()) {
    for (let y = 0; y < height; y++) {
      for (let x = 0; x < width; x++) {
        const light = 1 + slopeX * (x / width - 0.5) + slopeY * (y / height - 0.5);
        pixels[(channel * height + y) * width + x] = level * light;
      }
    }
  }
}

function fillPhotograph(canvas: Canvas, random: Random): void {
  fillPage(canvas, randomColor(random), random);
  const { width, height } = canvas;
  const largest = Math.min(width, height) / 2;
  for (let disc = 0; disc < 80; disc++) {
    // A density of radii of r^-3, which has the same look at every scale.
    const radius = largest / Math.sqrt(1 + random() * 400);
    const [x, y] = [random() * width, random() * height];
    const color = randomColor(random);
    paintSegment(canvas, { from: [x, y], to: [x, y], radius, color });
  }
  addSmoothNoise(canvas, random);
}

/** Mostly gray: colors of natural images are seldom pure. */
function randomColor(random: Random): Color {
  const gray = random();
  const channel = () => Math.min(1, Math.max(0, gray + 0.4 * (random() - 0.5)));
  return [channel(), channel(), channel()];
}

/** Octaves of noise, interpolated between points that are further apart the stronger it is. */
function addSmoothNoise({ width, height, pixels }: Canvas, random: Random): void {
  for (let spacing = 32; spacing >= 2; spacing /= 2) {
    const columns = Math.ceil(width / spacing) + 2;
    const rows = Math.ceil(height / spacing) + 2;
    const values = Float32Array.from({ length: columns * rows }, () => random() - 0.5);
    const amplitude = 0.006 * spacing;
    for (let y = 0; y < height; y++) {
      const [row, dy] = [Math.floor(y / spacing), (y % spacing) / spacing];
      for (let x = 0; x < width; x++) {
        const at = row * columns + Math.floor(x / spacing);
        const dx = (x % spacing) / spacing;
        const top = (values[at] ?? 0) * (1 - dx) + (values[at + 1] ?? 0) * dx;
        const bottom =
          (values[at + columns] ?? 0) * (1 - dx) + (values[at + columns + 1] ?? 0) * dx;
        const change = amplitude * (top * (1 - dy) + bottom * dy);
        for (let plane = 0; plane < 3; plane++) {
          const index = (plane * height + y) * width + x;
          pixels[index] = (pixels[index] ?? 0) + change;
        }
      }
    }
  }
}

function addNoise({ pixels }: Canvas, amplitude: number, random: Random): void {
  for (let index = 0; index < pixels.length; index++) {
    // The sum of two even numbers is near enough to a normal one.
    const noisy = (pixels[index] ?? 0) + amplitude * (random() + random() - 1);
    pixels[index] = Math.min(1, Math.max(0, noisy));
  }
}

interface Ink {
  /** Whether letters are light, as on a dark ground. */
  readonly isDark: boolean;
}

function inkColor({ isDark }: Ink, random: Random): Color {
  const level = () => (isDark ? 0.75 + 0.25 * random() : 0.35 * random());
  return [level(), level(), level()];
}

/** Text that fills a picture's height, as text recognizers get it. */
function writeSingleLine(canvas: Canvas, ink: Ink, random: Random): void {
  const { width, height } = canvas;
  const unit = (height * (0.7 + 0.15 * random())) / fontGrid.rows;
  const characters = Math.max(1, Math.floor((width - unit) / (fontGrid.advance * unit * 0.7)));
  const text = writeLine(Math.max(8, characters), random);
  writeText(canvas, { text, x: unit, y: (height - unit * fontGrid.rows) / 2, unit }, ink, random);
}

/** Lines of a few sizes from top to bottom. */
function writeLines(canvas: Canvas, ink: Ink, random: Random): void {
  const { width, height } = canvas;
  const margin = Math.min(width, height) * 0.05;
  let y = margin;
  while (y < height - margin) {
    const unit = Math.min(height / fontGrid.rows, 12 + 18 * random() ** 2) / fontGrid.rows;
    const characters = Math.floor((width - 2 * margin) / (fontGrid.advance * unit * 0.85));
    const text = writeLine(Math.max(3, Math.floor(characters * (0.4 + 0.6 * random()))), random);
    writeText(canvas, { text, x: margin, y, unit }, ink, random);
    y += unit * fontGrid.rows * (1.2 + 0.8 * random());
  }
}

interface TextLine {
  readonly text: string;
  readonly x: number;
  /** Top of the capitals. */
  readonly y: number;
  /** Pixels between points of the font's grid. */
  readonly unit: number;
}

function writeText(canvas: Canvas, { text, x, y, unit }: TextLine, ink: Ink, random: Random): void {
  const color = inkColor(ink, random);
  const radius = unit * (0.3 + 0.35 * random());
  const slant = random() < 0.2 ? 0.2 : 0;
  const stretch = 0.55 + 0.3 * random();
  const place = (index: number, [column, row]: readonly [number, number]): [number, number] => [
    x + (index * fontGrid.advance + column + slant * (fontGrid.ascent - row)) * unit * stretch,
    y + row * unit,
  ];
  for (const [index, character] of text.split("").entries()) {
    for (const line of glyphLines(character)) {
      for (const [at, point] of line.slice(1).entries()) {
        const from = line[at];
        if (from === undefined) continue;
        const ends = { from: place(index, from), to: place(index, point) };
        paintSegment(canvas, { ...ends, radius, color });
      }
    }
  }
}

interface Segment {
  readonly from: readonly [x: number, y: number];
  readonly to: readonly [x: number, y: number];
  readonly radius: number;
  readonly color: Color;
}

/** Paints every pixel within the radius of a segment; the edge is as soft as a pixel is wide. */
function paintSegment(
  { width, height, pixels }: Canvas,
  { from: [x0, y0], to: [x1, y1], radius, color }: Segment,
): void {
  const [dx, dy] = [x1 - x0, y1 - y0];
  const length = dx * dx + dy * dy;
  const left = Math.max(0, Math.floor(Math.min(x0, x1) - radius - 1));
  const right = Math.min(width - 1, Math.ceil(Math.max(x0, x1) + radius + 1));
  const bottom = Math.min(height - 1, Math.ceil(Math.max(y0, y1) + radius + 1));
  for (let y = Math.max(0, Math.floor(Math.min(y0, y1) - radius - 1)); y <= bottom; y++) {
    for (let x = left; x <= right; x++) {
      const along = length === 0 ? 0 : ((x - x0) * dx + (y - y0) * dy) / length;
      const nearest = Math.min(1, Math.max(0, along));
      const distance = Math.hypot(x - x0 - nearest * dx, y - y0 - nearest * dy);
      const cover = Math.min(1, Math.max(0, radius + 0.5 - distance));
      if (cover === 0) continue;
      for (const [plane, level] of color.entries()) {
        const index = (plane * height + y) * width + x;
        pixels[index] = (pixels[index] ?? 0) * (1 - cover) + level * cover;
      }
    }
  }
}

function turn({ width, height, pixels }: Canvas, quarters: number): Float32Array {
  if (quarters === 0) return pixels;
  if (quarters === 2) {
    const size = width * height;
    for (let plane = 0; plane < 3; plane++)
      pixels.subarray(plane * size, (plane + 1) * size).reverse();
    return pixels;
  }
  const turned = new Float32Array(pixels.length);
  let index = 0;
  for (let plane = 0; plane < 3; plane++) {
    for (let y = 0; y < width; y++) {
      for (let x = 0; x < height; x++) {
        const [column, row] = quarters === 1 ? [y, height - 1 - x] : [width - 1 - y, x];
        turned[index++] = pixels[(plane * height + row) * width + column] ?? 0;
      }
    }
  }
  return turned;
}
