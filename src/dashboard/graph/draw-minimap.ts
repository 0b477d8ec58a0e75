import type { Camera, ViewSize } from "./graph-camera.ts";
import type { Drawing } from "./draw-graph.ts";
import { toneColour } from "./graph-colours.ts";
import { rowHeight } from "./lay-out-graph.ts";

/** Draws the whole graph beside itself, with a frame around what is in view. */
export function drawMinimap(
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
