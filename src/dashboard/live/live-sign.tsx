import { formatExactTime } from "../shared/format.ts";
import { disconnectedSince } from "./service-changes.ts";

export function LiveSign() {
  const since = disconnectedSince.value;
  if (since === undefined) return <span class="live">Live</span>;
  const time = formatExactTime(since).slice(11, 19);
  return (
    <span class="live is-away" role="status">
      Disconnected since {time} UTC, reconnecting
    </span>
  );
}
