import type { CreatedToken } from "../../contract/people/token.ts";
import { interfaceUrl } from "../session/service.ts";
import { Command } from "../shared/command.tsx";
import { Dialog } from "../shared/dialog.tsx";
import { tokenCommand } from "./token-command.ts";

interface ShownTokenProps {
  readonly token: CreatedToken;
  readonly onClose: () => void;
}

/** A token that was just made: the service does not have it, so that it is shown this once. */
export function ShownToken({ token, onClose }: ShownTokenProps) {
  return (
    <Dialog title={`Token “${token.name}”`} onClose={onClose}>
      <p>Copy it now. The service keeps a hash alone and cannot show it again.</p>
      <Command text={token.token} label="Access token" />
      <p class="soft">Try it:</p>
      <Command text={tokenCommand(token, interfaceUrl)} label="curl command" />
      <div class="dialog-end">
        <button type="button" class="main" onClick={onClose}>
          I have copied it
        </button>
      </div>
    </Dialog>
  );
}
