import { disconnectedSince } from "../shared/connection-state.ts";
import { formatClock } from "../shared/format.ts";

export function LiveSign() {
  const since = disconnectedSince.value;
  if (since === undefined) return <span class="live">Live</span>;
  return (
    <span class="live is-away" role="status">
      Disconnected since {formatClock(since)}, reconnecting
    </span>
  );
}
