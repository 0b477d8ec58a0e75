import "./shared/plain-zod.ts";
import { type ComponentChild, render } from "preact";
import { App, preloadPage } from "./app.tsx";
import { followChanges } from "./live/service-changes.ts";
import { isLinkAddress } from "./link/link-address.ts";
import { announceSignIn } from "./session/session.ts";
import { watchFailures } from "./shared/failure-notice.tsx";
import { watchLeaving } from "./shared/leave-question.ts";
import { StartFailure } from "./sign-in/start-failure.tsx";

const root = findRoot();

function findRoot(): Element {
  const found = document.querySelector("#app");
  if (found === null) throw new Error("The document has no element #app");
  return found;
}

async function start(): Promise<void> {
  try {
    if (isLinkAddress(location.pathname)) {
      const { LinkPage } = await import("./link/link-page.tsx");
      show(<LinkPage />);
      return;
    }
    preloadPage(location.pathname);
    await announceSignIn();
    // Until it is known who is signed in, the shell of the document stands there.
    show(<App />);
  } catch (error) {
    show(<StartFailure error={error} retry={() => void start()} />);
  }
}

function show(page: ComponentChild): void {
  document.querySelector("#shell")?.remove();
  render(page, root);
}

watchFailures();
watchLeaving();
void start();
if (!isLinkAddress(location.pathname)) followChanges();
