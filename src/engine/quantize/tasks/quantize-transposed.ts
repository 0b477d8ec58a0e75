import type { AffineParameters } from "../kernels/affine-parameters.ts";
import { quantizeLinear } from "../kernels/quantize-linear.ts";
import type { ChannelSlice } from "./channel-slices.ts";
import { releaseBuffers } from "./release-buffers.ts";
import type { SliceContext } from "./slice-context.ts";

interface TransposedSlice {
  readonly parameters: AffineParameters;
  /** Of the matrix. */
  readonly columns: number;
}

/** Rows and columns of a slice that are written together, and their quantized values. */
interface TransposedPanel extends TransposedSlice {
  readonly firstRow: number;
  readonly rows: number;
  readonly firstColumn: number;
  readonly width: number;
  /** Column by column. */
  readonly into: Int8Array;
}

/** Fewest columns of a panel that could have more: short rows are slow to read. */
const fewestColumns = 1024;

/** Quantizes a slice, whose channels are rows of a matrix, and writes it transposed. */
export function* quantizeTransposed(
  context: SliceContext,
  slice: ChannelSlice,
  transposed: TransposedSlice,
): Generator<number> {
  const { mostValues, resultBytes } = context.limits;
  const { columns } = transposed;
  const sliceRows = (slice.rectangle.rows * slice.rectangle.columns) / columns;
  const fewest = Math.min(columns, fewestColumns);
  const fitting = Math.min(mostValues, Math.floor(resultBytes / sliceRows));
  const panelWidth = Math.min(columns, Math.max(fewest, fitting));
  const panelRows = Math.min(sliceRows, Math.max(1, Math.floor(resultBytes / panelWidth)));
  for (let firstRow = 0; firstRow < sliceRows; firstRow += panelRows) {
    const rows = Math.min(panelRows, sliceRows - firstRow);
    for (let firstColumn = 0; firstColumn < columns; firstColumn += panelWidth) {
      const width = Math.min(panelWidth, columns - firstColumn);
      const into = new Int8Array(rows * width);
      const panel = { ...transposed, firstRow, rows, firstColumn, width, into };
      yield* quantizePanel(context, slice, panel);
      writePanel(context, slice, panel);
      releaseBuffers(into);
    }
  }
}

function* quantizePanel(
  { task, reader, limits, sums }: SliceContext,
  { layout, rectangle: { start } }: ChannelSlice,
  { parameters, columns, firstRow, rows, firstColumn, width, into }: TransposedPanel,
): Generator<number> {
  const tileRows = Math.min(rows, Math.max(1, Math.floor(limits.values / width)));
  const part = new Int8Array(tileRows * width);
  for (let row = 0; row < rows; row += tileRows) {
    const count = Math.min(tileRows, rows - row);
    const values = reader.read({
      start: start + (firstRow + row) * columns + firstColumn,
      rows: count,
      columns: width,
      pitch: columns,
    });
    const tileParameters = sliceParameters(parameters, firstRow + row, count);
    const tileLayout = { channels: layout.channels === 1 ? 1 : count, inner: width };
    const target = { layout: tileLayout, parameters: tileParameters };
    quantizeLinear({ values, start: 0 }, target, part.subarray(0, values.length), sums);
    for (let column = 0; column < width; column++) {
      for (let from = column, to = column * rows + row; from < values.length; from += width, to++)
        into[to] = Number(part[from]);
    }
    yield (values.length / task.elements) * task.sourceBytes;
  }
  releaseBuffers(part);
}

/** The parameters of some rows; those of the whole tensor where it has one scale. */
function sliceParameters(
  { scales, zeroPoints, ...range }: AffineParameters,
  first: number,
  count: number,
): AffineParameters {
  if (scales.length === 1) return { scales, zeroPoints, ...range };
  const end = first + count;
  return {
    ...range,
    scales: scales.subarray(first, end),
    zeroPoints: zeroPoints.subarray(first, end),
  };
}

function writePanel(
  { task: { elements, matrices, outputs }, output }: SliceContext,
  { matrix, firstChannel }: ChannelSlice,
  { columns, firstRow, rows, firstColumn, width, into }: TransposedPanel,
): void {
  output.writeRectangle(outputs.quantizedValues, into, {
    bits: 8,
    rowElements: elements / matrices / columns,
    firstRow: matrix * columns + firstColumn,
    firstElement: firstChannel + firstRow,
    rows: width,
    elements: rows,
  });
}
