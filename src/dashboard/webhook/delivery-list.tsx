import { useSignal } from "@preact/signals";
import type { Webhook, WebhookDelivery } from "../../contract/deliveries/webhook.ts";
import { formatCount } from "../../contract/text/format-count.ts";
import { useLive } from "../live/use-live.ts";
import { service } from "../session/service.ts";
import { Button } from "../shared/button.tsx";
import { Dialog, DialogDoneEnd } from "../shared/dialog.tsx";
import { Loading, MaybeError } from "../shared/notice.tsx";
import { Age } from "../shared/page-head.tsx";
import { ToneSign } from "../shared/status.tsx";

const shownDeliveries = "20";
const everyMs = 3000;

interface DeliveryListProps {
  readonly webhook: Webhook;
  readonly onClose: () => void;
}

/** The newest deliveries of a webhook, each of which can be sent again. */
export function DeliveryList({ webhook: { id, url }, onClose }: DeliveryListProps) {
  const load = async () => {
    const query = { limit: shownDeliveries };
    return (await service.call("listDeliveries", { params: { id }, query })).deliveries;
  };
  const { value: deliveries, error, reload } = useLive(load, { everyMs });
  const failure = useSignal<unknown>(undefined);
  const replay = async (delivery: string) => {
    failure.value = undefined;
    const sent = service.call("replayDelivery", { params: { id, delivery } });
    await sent.catch((thrown: unknown) => (failure.value = thrown));
    await reload();
  };
  return (
    <Dialog title="Newest deliveries" onClose={onClose}>
      <p class="soft cut-anywhere">{url}</p>
      <MaybeError error={error} retry={reload} />
      <MaybeError error={failure.value} />
      {deliveries === undefined && error === undefined && <Loading />}
      {deliveries?.length === 0 && <p class="soft">Nothing was sent yet.</p>}
      <ul class="list deliveries">
        {deliveries?.map((delivery) => (
          <DeliveryLine key={delivery.id} delivery={delivery} onReplay={replay} />
        ))}
      </ul>
      <DialogDoneEnd done="Close" onDone={onClose} />
    </Dialog>
  );
}

const looks = {
  pending: { tone: "wait", icon: "wait", words: "Not delivered yet" },
  delivered: { tone: "calm", icon: "good", words: "Delivered" },
  failed: { tone: "bad", icon: "bad", words: "Failed" },
} as const;

interface DeliveryLineProps {
  readonly delivery: WebhookDelivery;
  readonly onReplay: (id: string) => Promise<void>;
}

function DeliveryLine({ delivery, onReplay }: DeliveryLineProps) {
  const { id, type, status, createdAt, attempts, responseStatus, error } = delivery;
  const answer = error ?? (responseStatus === null ? "" : `answered ${responseStatus}`);
  return (
    <li>
      <div class="grow">
        <ToneSign {...looks[status]} /> <code>{type}</code>{" "}
        <span class="soft">
          <Age at={createdAt} />, {formatCount(attempts, "attempt")}
          {answer !== "" && `: ${answer}`}
        </span>
      </div>
      {status !== "pending" && (
        <Button look="quiet" label={`Send again: ${type}`} onClick={() => onReplay(id)}>
          Send again
        </Button>
      )}
    </li>
  );
}
