import { type Signal, useSignal } from "@preact/signals";
import { type CreatedWebhook, webhookRequest } from "../../contract/deliveries/webhook.ts";
import { service } from "../session/service.ts";
import { Dialog, DialogFormEnd } from "../shared/dialog.tsx";
import { type FieldMessages, invalidFields, refusedFields } from "../shared/field-errors.ts";
import { TextField } from "../shared/field.tsx";
import { ErrorNotice } from "../shared/notice.tsx";
import { type HeadersOf, useStart } from "../shared/use-start.ts";

interface CreateWebhookDialogProps {
  readonly onCreated: (webhook: CreatedWebhook) => void;
  readonly onClose: () => void;
}

/** What most receivers want; programs can choose each status. */
const offeredEvents = {
  "job.*": "every status of jobs",
  "job.completed": "jobs that completed",
  "job.failed": "jobs that failed",
  "batch.*": "every status of batches",
} as const;

export function CreateWebhookDialog({ onCreated, onClose }: CreateWebhookDialogProps) {
  const form: WebhookForm = {
    url: useSignal(""),
    description: useSignal(""),
    events: useSignal<readonly string[]>(["job.*", "batch.*"]),
    messages: useSignal<FieldMessages>({}),
    failure: useSignal<unknown>(undefined),
  };
  const { start } = useStart();
  const submit = async (event: Event) => {
    event.preventDefault();
    const created = await start((headersOf) => createFormWebhook(form, headersOf));
    if (created !== undefined) onCreated(created);
  };
  return (
    <Dialog title="New webhook" onClose={onClose}>
      <form onSubmit={(event) => void submit(event)} noValidate>
        {form.failure.value !== undefined && <ErrorNotice error={form.failure.value} />}
        <TextField
          label="Address"
          hint="Where events are sent, such as https://example.com/hooks"
          error={form.messages.value["url"]}
          text={form.url}
        />
        <EventChoice form={form} />
        <TextField
          label="Description"
          hint="For people who read this list"
          error={form.messages.value["description"]}
          text={form.description}
        />
        <DialogFormEnd action="Create webhook" onCancel={onClose} />
      </form>
    </Dialog>
  );
}

interface WebhookForm {
  readonly url: Signal<string>;
  readonly description: Signal<string>;
  readonly events: Signal<readonly string[]>;
  readonly messages: Signal<FieldMessages>;
  readonly failure: Signal<unknown>;
}

/** Creates the form's webhook; undefined where the form then says what is wrong. */
async function createFormWebhook(
  form: WebhookForm,
  headersOf: HeadersOf,
): Promise<CreatedWebhook | undefined> {
  const parsed = webhookRequest.safeParse({
    url: form.url.value.trim(),
    events: form.events.value,
    description: form.description.value.trim(),
  });
  form.failure.value = undefined;
  form.messages.value = parsed.success ? {} : invalidFields(parsed.error);
  if (!parsed.success) return undefined;
  try {
    const body = parsed.data;
    return await service.call("createWebhook", { body, headers: headersOf(body) });
  } catch (error) {
    form.messages.value = refusedFields(error);
    form.failure.value = error;
    return undefined;
  }
}

function EventChoice({ form: { events, messages } }: { readonly form: WebhookForm }) {
  const toggle = (name: string, isOn: boolean) => {
    const others = events.value.filter((each) => each !== name);
    events.value = isOn ? [...others, name] : others;
  };
  const error = messages.value["events"];
  return (
    <fieldset class="labelled">
      <legend>Events</legend>
      {Object.entries(offeredEvents).map(([name, words]) => (
        <label key={name} class="choice">
          <input
            type="checkbox"
            checked={events.value.includes(name)}
            onChange={({ currentTarget }) => toggle(name, currentTarget.checked)}
          />
          <code>{name}</code>
          <span class="soft">{words}</span>
        </label>
      ))}
      {error !== undefined && <p class="bad">{error}</p>}
    </fieldset>
  );
}
