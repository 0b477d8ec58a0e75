export interface Scale {
  /** The ends of the scale. */
  readonly from: number;
  readonly to: number;
  readonly format: (value: number) => string;
  readonly value: number;
  /** The interval that the value is known to lie in. */
  readonly low?: number | undefined;
  readonly high?: number | undefined;
  readonly original?: number;
  readonly limit: number | undefined;
  readonly bound: "max" | "min";
}

/** Half the room that a label takes of the scale. */
const labelPercent = 16;

interface ScaleProps {
  readonly scale: Scale;
}

/** A figure on its scale: interval, value, original and limit. Words beside it say the same. */
export function FigureScale({ scale }: ScaleProps) {
  const { value, low = value, high = value, limit } = scale;
  const [start, end] = [placeOnScale(scale, low), placeOnScale(scale, high)];
  return (
    <div class="scale" aria-hidden="true">
      {limit !== undefined && <Beyond scale={scale} at={placeOnScale(scale, limit)} />}
      <i class="range" style={{ left: `${start}%`, width: `${end - start}%` }} />
      <Marks scale={scale} />
      <i class="dot" style={{ left: `${placeOnScale(scale, value)}%` }} />
      <Ends scale={scale} />
    </div>
  );
}

/** Percent of the scale. */
function placeOnScale({ from, to }: Scale, at: number): number {
  return (100 * (Math.min(to, Math.max(from, at)) - from)) / (to - from);
}

function listMarks(scale: Scale): number[] {
  const { original, limit } = scale;
  return [original, limit].flatMap((at) => (at === undefined ? [] : [placeOnScale(scale, at)]));
}

function Marks({ scale }: ScaleProps) {
  const { original, limit, format } = scale;
  const [first = 0, last = first] = listMarks(scale);
  const isCrowded = last !== first && Math.abs(last - first) < 2 * labelPercent;
  const [before, behind] = first <= last ? ["end", "start"] : ["start", "end"];
  const text = limit === undefined ? "" : `limit ${format(limit)}`;
  return (
    <>
      {original !== undefined && (
        <Mark look="" at={first} text="original" side={isCrowded ? before : ""} />
      )}
      {text !== "" && <Mark look="limit" at={last} text={text} side={isCrowded ? behind : ""} />}
    </>
  );
}

/** What the ends of the scale stand for, where no other label is. */
function Ends({ scale }: ScaleProps) {
  const marks = listMarks(scale);
  const isFree = (at: number) => marks.every((mark) => Math.abs(mark - at) > labelPercent);
  return (
    <>
      {isFree(0) && <span class="label start">{scale.format(scale.from)}</span>}
      {isFree(100) && <span class="label end at-end">{scale.format(scale.to)}</span>}
    </>
  );
}

/** The part of the scale that the limit forbids. */
function Beyond({ scale: { bound }, at }: ScaleProps & { readonly at: number }) {
  const [left, width] = bound === "max" ? [at, 100 - at] : [0, at];
  return <i class="over" style={{ left: `${left}%`, width: `${width}%` }} />;
}

interface MarkProps {
  readonly look: string;
  /** Percent of the scale. */
  readonly at: number;
  readonly text: string;
  /** `start` and `end` where the label has no room in the middle. */
  readonly side: string | undefined;
}

function Mark({ look, at, text, side }: MarkProps) {
  return (
    <>
      <i class={`mark ${look}`} style={{ left: `${at}%` }} />
      <span class={`label ${side}`} style={{ left: `${at}%` }}>
        {text}
      </span>
    </>
  );
}
