import { ToneSign } from "../shared/tone-sign.tsx";
import { FigureScale, type Scale } from "./figure-scale.tsx";

interface FigureCardProps {
  readonly title: string;
  readonly big: string;
  readonly beside: string;
  readonly below: string;
  readonly scale: Scale;
  /** Whether a figure beyond its limit warns, and does not fail. */
  readonly warns: boolean;
}

export function FigureCard({ title, big, beside, below, ...limit }: FigureCardProps) {
  return (
    <section class="card figure c4">
      <h2>
        {title}
        <Verdict {...limit} />
      </h2>
      <div class="big">
        {big} <small>{beside}</small>
      </div>
      <p>{below}</p>
      <FigureScale scale={limit.scale} />
    </section>
  );
}

/** Whether the figure is within its limit, as far as its interval says. */
function Verdict({ scale, warns }: Pick<FigureCardProps, "scale" | "warns">) {
  const { limit, bound, value, low = value, high = value, format } = scale;
  if (limit === undefined) return <span class="dim">no limit</span>;
  const relation = bound === "max" ? "≤" : "≥";
  const [best, worst] = bound === "max" ? [low - limit, high - limit] : [limit - high, limit - low];
  const words = `${relation} ${format(limit)}`;
  if (best > 0 && !warns) return <ToneSign tone="bad" icon="bad" words={`fails ${words}`} />;
  if (best > 0) return <ToneSign tone="warn" icon="warn" words={`misses ${words}`} />;
  if (worst > 0) return <ToneSign tone="warn" icon="warn" words={`not sure of ${words}`} />;
  return <ToneSign tone="calm" icon="check" words={`passes ${words}`} />;
}
