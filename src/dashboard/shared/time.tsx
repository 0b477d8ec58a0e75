import { serviceNow } from "./clock.ts";
import { formatAge, formatDuration, formatExactTime } from "./format-time.ts";

/** How long ago something was, with the exact time on hover. */
export function Age({ at }: { readonly at: string }) {
  const time = Date.parse(at);
  return (
    <time dateTime={at} title={formatExactTime(time)}>
      {formatAge(time, serviceNow.value)}
    </time>
  );
}

/** Time from a moment until another one, or until now. */
export function Duration({ from, to }: { readonly from: string; readonly to: string | null }) {
  const start = Date.parse(from);
  const end = to === null ? serviceNow.value : Date.parse(to);
  return <span title={`Since ${formatExactTime(start)}`}>{formatDuration(end - start)}</span>;
}
