import { Brand } from "./brand.tsx";
import { ErrorNotice } from "../shared/notice.tsx";

interface StartFailureProps {
  readonly error: unknown;
  readonly retry: () => void;
}

/** In place of the page where the service does not say who is signed in. */
export function StartFailure({ error, retry }: StartFailureProps) {
  return (
    <main class="gate" id="main">
      <div class="card gate-card">
        <Brand />
        <h1>The service does not answer</h1>
        <ErrorNotice error={error} retry={retry} />
        <p class="soft">
          It may be starting again: wait a moment. If this goes on, ask its administrator, who sees
          the reason in its log.
        </p>
      </div>
    </main>
  );
}
