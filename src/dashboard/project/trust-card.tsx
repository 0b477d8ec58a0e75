import { type Signal, useSignal } from "@preact/signals";
import { jsonValue } from "../../contract/text/json-value.ts";
import { type TrustCheck, trustCheckRequest } from "../../contract/people/trust-check.ts";
import { ProblemError } from "../../client/problem-error.ts";
import { useLive } from "../live/use-live.ts";
import { service } from "../session/service.ts";
import { Icon } from "../shared/button.tsx";
import { Field } from "../shared/field.tsx";
import { formatDuration } from "../shared/format.ts";
import { MaybeError } from "../shared/notice.tsx";

/** Says whether a workflow would get an access token, before it runs. */
export function TrustCard() {
  const { value: hasPolicy, error, reload } = useLive(findPolicy);
  return (
    <section class="card c7" aria-labelledby="trust">
      <header>
        <h2 id="trust">Would this workflow get a token?</h2>
      </header>
      <MaybeError error={error} retry={reload} />
      {hasPolicy === true && <TrustCheckForm />}
      {hasPolicy === false && (
        <p class="card-note">
          No: this service has no trust policy. <code>MOS_TRUST_POLICY_FILE</code> names its file.
        </p>
      )}
    </section>
  );
}

/** Whether the service has a trust policy at all: it answers for claims that fit none. */
async function findPolicy(): Promise<boolean> {
  try {
    await service.call("checkTrustPolicy", { body: { claims: {} } });
    return true;
  } catch (error) {
    if (error instanceof ProblemError && error.problem.code === "identity_token_refused")
      return false;
    throw error;
  }
}

function TrustCheckForm() {
  const form = useTrustForm();
  const submit = (event: Event) => {
    event.preventDefault();
    void checkFormClaims(form);
  };
  return (
    <form class="card-form" onSubmit={submit} noValidate>
      <ClaimsField form={form} />
      <button>Check</button>
      <MaybeError error={form.failure.value} />
      <div role="status">{form.answer.value && <TrustAnswer {...form.answer.value} />}</div>
    </form>
  );
}

const claimsHint =
  "The claims of its identity token as JSON. This is a check only: it issues no token.";

function ClaimsField({ form: { claims, message } }: { readonly form: TrustForm }) {
  return (
    <Field label="Workflow claims" hint={claimsHint} error={message.value}>
      {({ id, describedBy }) => (
        <textarea
          id={id}
          class="mono"
          rows={8}
          spellcheck={false}
          aria-describedby={describedBy}
          aria-invalid={message.value !== undefined}
          value={claims.value}
          onInput={({ currentTarget }) => (claims.value = currentTarget.value)}
        />
      )}
    </Field>
  );
}

function TrustAnswer({ grant, mismatch }: TrustCheck) {
  return grant === null ? <NoGrant claim={mismatch ?? ""} /> : <Grant {...grant} />;
}

function NoGrant({ claim }: { readonly claim: string }) {
  return (
    <p class="status bad wraps">
      <Icon name="bad" />
      <span>
        No token: the claim <code>{claim}</code> does not match.
      </span>
    </p>
  );
}

function Grant({ policy, project, scopes, expiresInSeconds }: NonNullable<TrustCheck["grant"]>) {
  return (
    <p class="status calm wraps">
      <Icon name="good" />
      <span>
        A token from the policy “{policy}” in project {project} with {scopes.join(", ")}, valid for{" "}
        {formatDuration(expiresInSeconds * 1000)}.
      </span>
    </p>
  );
}

const example = {
  iss: "https://token.actions.githubusercontent.com",
  repository_owner_id: "9919",
  repository_id: "123456",
  event_name: "push",
  ref: "refs/heads/main",
};

interface TrustForm {
  /** As JSON. */
  readonly claims: Signal<string>;
  readonly message: Signal<string | undefined>;
  readonly answer: Signal<TrustCheck | undefined>;
  readonly failure: Signal<unknown>;
}

function useTrustForm(): TrustForm {
  return {
    claims: useSignal(JSON.stringify(example, null, 2)),
    message: useSignal<string | undefined>(undefined),
    answer: useSignal<TrustCheck | undefined>(undefined),
    failure: useSignal<unknown>(undefined),
  };
}

/** Asks which token the form's claims give; the form then says it, or what is wrong. */
async function checkFormClaims({ claims, message, answer, failure }: TrustForm) {
  [answer.value, failure.value] = [undefined, undefined];
  const body = trustCheckRequest.safeParse({ claims: jsonValue.safeParse(claims.value).data }).data;
  message.value = body === undefined ? "Enter a JSON object whose values are strings" : undefined;
  if (body === undefined) return;
  try {
    answer.value = await service.call("checkTrustPolicy", { body });
  } catch (error) {
    failure.value = error;
  }
}
