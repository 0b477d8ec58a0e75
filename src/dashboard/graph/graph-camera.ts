import { type GraphLayout, rowHeight } from "./lay-out-graph.ts";

/** Which part of the drawing is in view: the point in the middle of its top, and its scale. */
export interface Camera {
  readonly x: number;
  readonly y: number;
  /** Pixels of the window for one of the drawing. */
  readonly scale: number;
}

export interface ViewSize {
  readonly width: number;
  readonly height: number;
}

const largestScale = 2;
/** Below it a row has no text, since nobody could read it. */
export const readableScale = 0.55;
const margin = 32;

type Ends = Pick<GraphLayout, "left" | "right" | "bottom">;

function wholeScale({ left, right, bottom }: Ends, view: ViewSize): number {
  const [width, height] = [right - left + 2 * margin, bottom + 2 * margin];
  return Math.min(1, view.width / width, view.height / height);
}

/** The start of the drawing, at the size of the text around it. */
export function firstCamera(ends: Ends, view: ViewSize): Camera {
  return clampCamera({ x: 0, y: -margin, scale: 1 }, ends, view);
}

export function wholeCamera(ends: Ends, view: ViewSize): Camera {
  const scale = wholeScale(ends, view);
  return { x: (ends.left + ends.right) / 2, y: -margin, scale };
}

/** The camera that is nearest to one and shows a part of the drawing. */
export function clampCamera(camera: Camera, ends: Ends, view: ViewSize): Camera {
  const scale = clamp(camera.scale, wholeScale(ends, view), largestScale);
  const lowest = Math.max(-margin, ends.bottom + margin - view.height / scale);
  return {
    x: clamp(camera.x, ends.left, ends.right),
    y: clamp(camera.y, -margin, lowest),
    scale,
  };
}

/** Zooms so that a point of the window stays where it is. */
export function zoomCamera(
  camera: Camera,
  factor: number,
  at: { readonly x: number; readonly y: number },
): Camera {
  const scale = camera.scale * factor;
  const moved = 1 / camera.scale - 1 / scale;
  return { x: camera.x + at.x * moved, y: camera.y + at.y * moved, scale };
}

/** Moves a row of the drawing into the middle of the window. */
export function centreCamera(
  { scale }: Camera,
  row: { readonly x: number; readonly y: number },
  view: ViewSize,
): Camera {
  const readable = Math.max(scale, readableScale);
  return { x: row.x, y: row.y + rowHeight / 2 - view.height / readable / 2, scale: readable };
}

function clamp(value: number, low: number, high: number): number {
  return Math.min(high, Math.max(low, value));
}
