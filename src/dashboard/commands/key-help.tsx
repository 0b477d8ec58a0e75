import "./commands.css";
import { Button } from "../shared/button.tsx";
import { Dialog } from "../shared/dialog.tsx";

interface KeyRow {
  readonly keys: readonly string[];
  readonly does: string;
}

const sections: Readonly<Record<string, readonly KeyRow[]>> = {
  "On every page": [
    { keys: ["Ctrl K", "⌘ K"], does: "Find a page, a job or an action" },
    { keys: ["?"], does: "Show this help" },
    { keys: ["Esc"], does: "Close a dialog" },
    { keys: ["Tab", "Enter"], does: "Move to the next control, and activate it" },
  ],
  Jobs: [
    { keys: ["/"], does: "Find jobs by model, target, label, batch or id" },
    { keys: ["Space"], does: "Select or clear the focused checkbox" },
  ],
  Graph: [
    { keys: ["←", "↑", "→", "↓"], does: "Move the graph" },
    { keys: ["+", "-"], does: "Zoom" },
    { keys: ["0"], does: "Show the whole graph" },
  ],
};

export function KeyHelp({ onClose }: { readonly onClose: () => void }) {
  return (
    <Dialog title="Keyboard" onClose={onClose}>
      {Object.entries(sections).map(([title, rows]) => (
        <section key={title} class="keys">
          <h3>{title}</h3>
          <dl>
            {rows.map((row) => (
              <KeyEntry key={row.does} row={row} />
            ))}
          </dl>
        </section>
      ))}
      <div class="dialog-end">
        <Button onClick={onClose}>Close</Button>
      </div>
    </Dialog>
  );
}

function KeyEntry({ row: { keys, does } }: { readonly row: KeyRow }) {
  return (
    <div>
      <dt>
        {keys.map((each) => (
          <kbd key={each}>{each}</kbd>
        ))}
      </dt>
      <dd>{does}</dd>
    </div>
  );
}
