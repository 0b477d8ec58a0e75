import "./shared/plain-zod.ts";
import "./styles/tokens.css";
import "./styles/page.css";
import { render } from "preact";
import { App } from "./app.tsx";
import { followChanges } from "./live/service-changes.ts";
import { announceSignIn } from "./session/session.ts";
import { ErrorNotice } from "./shared/notice.tsx";

async function start(root: Element): Promise<void> {
  render(<App />, root);
  try {
    await announceSignIn();
  } catch (error) {
    render(<ErrorNotice error={error} retry={() => void start(root)} />, root);
  }
}

const root = document.querySelector("#app");
if (root === null) throw new Error("The document has no element #app");
void start(root);
followChanges();
