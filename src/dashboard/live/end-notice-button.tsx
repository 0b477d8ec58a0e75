import { useSignal } from "@preact/signals";
import { followed, followEnd, unfollowEnd } from "./end-notices.ts";
import { Button, Icon } from "../shared/button.tsx";

/** Has the browser say when a job or batch ends, for as long as this tab is open. */
export function EndNoticeButton({ id }: { readonly id: string }) {
  const isRefused = useSignal(false);
  // Browsers have no notifications on addresses without TLS.
  if (!("Notification" in window)) return undefined;
  const isFollowed = followed.value.has(id);
  const toggle = async () => {
    if (isFollowed) unfollowEnd(id);
    else isRefused.value = !(await followEnd(id));
  };
  return (
    <>
      {isRefused.value && (
        <span class="soft" role="status">
          The browser's settings block notifications of this page
        </span>
      )}
      <Button title="For as long as this tab is open" onClick={toggle}>
        {isFollowed && <Icon name="check" />}
        {isFollowed ? "Will be notified" : "Notify me"}
      </Button>
    </>
  );
}
