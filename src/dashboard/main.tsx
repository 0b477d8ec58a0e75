import "./shared/plain-zod.ts";
import { render } from "preact";
import { App } from "./app.tsx";
import { followChanges } from "./live/service-changes.ts";
import { announceSignIn } from "./session/session.ts";
import { ErrorNotice } from "./shared/notice.tsx";

async function start(root: Element): Promise<void> {
  try {
    await announceSignIn();
    // Until it is known who is signed in, the document's own shell stands there.
    render(<App />, root);
  } catch (error) {
    render(<ErrorNotice error={error} retry={() => void start(root)} />, root);
  }
}

const root = document.querySelector("#app");
if (root === null) throw new Error("The document has no element #app");
void start(root);
followChanges();
