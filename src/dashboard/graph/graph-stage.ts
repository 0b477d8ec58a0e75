import { effect } from "@preact/signals";
import { drawGraph, type Drawing, findNodeAt, findRow, toneColour } from "./draw-graph.ts";
import {
  type Camera,
  centreCamera,
  clampCamera,
  firstCamera,
  type ViewSize,
  wholeCamera,
  zoomCamera,
} from "./graph-camera.ts";
import { rowHeight } from "./lay-out-graph.ts";
import type { ShownGraph } from "./shown-graph.ts";
import { type Palette, readPalette, watchColours } from "../shared/palette.ts";

interface StageCanvases {
  readonly canvas: HTMLCanvasElement;
  readonly map: HTMLCanvasElement;
}

/** Pixels that an arrow key moves. */
const keyStep = 80;
const keyZoom = 1.25;
const wheelZoom = 0.0025;
/** A pointer that moved less has clicked, pixels. */
const clickPx = 4;

const arrows: Readonly<Record<string, readonly [x: number, y: number]>> = {
  ArrowLeft: [-1, 0],
  ArrowRight: [1, 0],
  ArrowUp: [0, -1],
  ArrowDown: [0, 1],
  PageUp: [0, -5],
  PageDown: [0, 5],
};

/** Keeps a graph drawn on its canvases, and moves it. */
export class GraphStage {
  readonly #shown: ShownGraph;
  readonly #canvases: StageCanvases;
  readonly #stop = new AbortController();
  #camera: Camera;
  #palette: Palette = readPalette();
  #frame = 0;

  constructor(shown: ShownGraph, canvases: StageCanvases) {
    this.#shown = shown;
    this.#canvases = canvases;
    this.#camera = firstCamera(shown.drawn.layout, this.#view);
    this.#listen();
    shown.findMiddle = () => this.#findMiddle();
    const resized = new ResizeObserver(() => this.#move(this.#camera));
    resized.observe(canvases.canvas);
    const stopColours = watchColours(() => {
      this.#palette = readPalette();
      this.#draw();
    });
    const stopDrawing = effect(() => {
      this.#showSelected(shown.selected.value);
      if (shown.tones.value.length > 0) this.#draw();
    });
    this.#stop.signal.addEventListener("abort", () => {
      resized.disconnect();
      stopColours();
      stopDrawing();
      cancelAnimationFrame(this.#frame);
    });
  }

  close(): void {
    this.#stop.abort();
  }

  zoom(factor: number): void {
    this.#move(zoomCamera(this.#camera, factor, { x: 0, y: this.#view.height / 2 }));
  }

  showAll(): void {
    this.#move(wholeCamera(this.#shown.drawn.layout, this.#view));
  }

  get #view(): ViewSize {
    const { clientWidth: width, clientHeight: height } = this.#canvases.canvas;
    return { width, height };
  }

  /** @returns whether the camera is another one now */
  #move(camera: Camera): boolean {
    const before = this.#camera;
    this.#camera = clampCamera(camera, this.#shown.drawn.layout, this.#view);
    this.#draw();
    const { x, y, scale } = this.#camera;
    return x !== before.x || y !== before.y || scale !== before.scale;
  }

  #moveBy(x: number, y: number): boolean {
    const { scale, ...at } = this.#camera;
    return this.#move({ x: at.x + x / scale, y: at.y + y / scale, scale });
  }

  #findMiddle(): number | undefined {
    const { x, y, scale } = this.#camera;
    return findNodeAt(this.#shown.drawn.layout, { x, y: y + this.#view.height / scale / 2 });
  }

  #showSelected(node: number | undefined): void {
    const row = node === undefined ? undefined : findRow(this.#shown.drawn.layout, node);
    if (row === undefined) return;
    const { x, y, scale } = this.#camera;
    const { width, height } = this.#view;
    const isInView =
      row.y > y && row.y < y + height / scale && Math.abs(row.x - x) < width / scale / 2;
    if (!isInView) this.#move(centreCamera(this.#camera, row, this.#view));
  }

  #draw(): void {
    cancelAnimationFrame(this.#frame);
    this.#frame = requestAnimationFrame(() => this.#drawNow());
  }

  #drawNow(): void {
    const { canvas, map } = this.#canvases;
    const { drawn, tones, changes, selected } = this.#shown;
    const drawing: Drawing = {
      ...drawn,
      palette: this.#palette,
      tones: tones.peek(),
      changes,
      selected: selected.peek(),
    };
    const view = fitCanvas(canvas);
    const context = canvas.getContext("2d");
    if (context) drawGraph(context, drawing, this.#camera, view);
    const isWhole = drawn.layout.bottom * this.#camera.scale <= view.height;
    map.style.visibility = isWhole ? "hidden" : "visible";
    const mapSize = fitCanvas(map);
    const mapContext = map.getContext("2d");
    if (mapContext) drawMinimap(mapContext, drawing, this.#camera, { view, map: mapSize });
  }

  #listen(): void {
    const { canvas, map } = this.#canvases;
    const { signal } = this.#stop;
    canvas.addEventListener("wheel", (event) => this.#turnWheel(event), { signal, passive: false });
    canvas.addEventListener("keydown", (event) => this.#pressKey(event), { signal });
    canvas.addEventListener("pointerdown", (event) => this.#drag(event), { signal });
    canvas.addEventListener("dblclick", () => this.#shown.enter(), { signal });
    map.addEventListener("pointerdown", (event) => this.#goTo(event), { signal });
    map.addEventListener("pointermove", (event) => event.buttons > 0 && this.#goTo(event), {
      signal,
    });
  }

  /** Where the drawing has no more to show, the page scrolls. */
  #turnWheel(event: WheelEvent): void {
    const { offsetX, offsetY, deltaX, deltaY } = event;
    if (!event.ctrlKey && !event.metaKey) {
      if (this.#moveBy(deltaX, deltaY)) event.preventDefault();
      return;
    }
    event.preventDefault();
    const at = { x: offsetX - this.#view.width / 2, y: offsetY };
    this.#move(zoomCamera(this.#camera, Math.exp(-deltaY * wheelZoom), at));
  }

  #pressKey(event: KeyboardEvent): void {
    const [x, y] = arrows[event.key] ?? [0, 0];
    if (x !== 0 || y !== 0) this.#moveBy(x * keyStep, y * keyStep);
    else if (event.key === "+" || event.key === "=") this.zoom(keyZoom);
    else if (event.key === "-") this.zoom(1 / keyZoom);
    else if (event.key === "0") this.showAll();
    else if (event.key === "Enter") this.#shown.enter();
    else if (event.key === "Backspace") this.#shown.leave();
    else return;
    event.preventDefault();
  }

  #drag(down: PointerEvent): void {
    const { canvas } = this.#canvases;
    let [x, y] = [down.clientX, down.clientY];
    const moving = new AbortController();
    const signal = AbortSignal.any([moving.signal, this.#stop.signal]);
    canvas.setPointerCapture(down.pointerId);
    canvas.addEventListener(
      "pointermove",
      (event) => {
        this.#moveBy(x - event.clientX, y - event.clientY);
        [x, y] = [event.clientX, event.clientY];
      },
      { signal },
    );
    canvas.addEventListener(
      "pointerup",
      (up) => {
        moving.abort();
        const moved = Math.hypot(up.clientX - down.clientX, up.clientY - down.clientY);
        if (moved < clickPx) this.#select(up);
      },
      { signal },
    );
    canvas.addEventListener("pointercancel", () => moving.abort(), { signal });
  }

  #select({ offsetX, offsetY }: PointerEvent): void {
    const { x, y, scale } = this.#camera;
    const at = { x: x + (offsetX - this.#view.width / 2) / scale, y: y + offsetY / scale };
    this.#shown.selected.value = findNodeAt(this.#shown.drawn.layout, at);
  }

  #goTo({ offsetY }: PointerEvent): void {
    const { bottom } = this.#shown.drawn.layout;
    const { scale, x } = this.#camera;
    const middle = (offsetY / this.#canvases.map.clientHeight) * bottom;
    this.#move({ x, y: middle - this.#view.height / scale / 2, scale });
  }
}

/** Gives a canvas a pixel for each of the screen's. @returns its size in pixels of the page */
function fitCanvas(canvas: HTMLCanvasElement): ViewSize {
  const { clientWidth: width, clientHeight: height } = canvas;
  const [across, down] = [width, height].map((each) => Math.round(each * devicePixelRatio));
  if (canvas.width !== across) canvas.width = across ?? 0;
  if (canvas.height !== down) canvas.height = down ?? 0;
  return { width, height };
}

/** Draws the whole graph beside itself, with a frame around what is in view. */
function drawMinimap(
  context: CanvasRenderingContext2D,
  { layout, palette, tones }: Drawing,
  camera: Camera,
  { view, map }: { readonly view: ViewSize; readonly map: ViewSize },
): void {
  const ratio = devicePixelRatio;
  const scale = map.height / Math.max(1, layout.bottom);
  const across = map.width / Math.max(1, layout.right - layout.left);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, map.width, map.height);
  for (const { blocks } of layout.segments) {
    for (const { x, y, width, nodes } of blocks) {
      for (const [row, node] of nodes.entries()) {
        const tone = tones[node] ?? "none";
        context.fillStyle = tone === "none" ? palette.line : toneColour(palette, tone);
        const left = (x - width / 2 - layout.left) * across;
        const top = (y + row * rowHeight) * scale;
        context.fillRect(left, top, Math.max(2, width * across), Math.max(0.75, rowHeight * scale));
      }
    }
  }
  const height = Math.max(6, (view.height / camera.scale) * scale);
  drawFrame(context, palette.focus, [camera.y * scale, map.width, height]);
}

/** What is in view. */
function drawFrame(
  context: CanvasRenderingContext2D,
  colour: string,
  [top, width, height]: readonly [number, number, number],
): void {
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.strokeRect(0.75, top, width - 1.5, height);
}
