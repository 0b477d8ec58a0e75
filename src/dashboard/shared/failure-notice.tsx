import { signal } from "@preact/signals";
import { Button, Icon } from "./button.tsx";
import { sayError } from "./notice.tsx";

const failure = signal<unknown>(undefined);

/** Notes what failed and nobody caught, such as a sign-out while the service is away. */
export function watchFailures(): void {
  addEventListener("unhandledrejection", ({ reason }) => (failure.value = reason));
}

/** Says it over whatever page is shown. */
export function FailureNotice() {
  if (failure.value === undefined) return undefined;
  return (
    <div class="notice bad over-page" role="alert">
      <Icon name="bad" />
      <div>{sayError(failure.value)}</div>
      <Button look="quiet" label="Close" onClick={() => (failure.value = undefined)}>
        <Icon name="close" />
      </Button>
    </div>
  );
}
