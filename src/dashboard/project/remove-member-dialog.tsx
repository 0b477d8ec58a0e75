import { useSignal } from "@preact/signals";
import type { Member } from "../../contract/people/member.ts";
import { loadSelf } from "../session/session.ts";
import { self } from "../session/session-state.ts";
import { service } from "../session/service.ts";
import { Dialog, DialogRemovalEnd } from "../shared/dialog.tsx";
import { MaybeError } from "../shared/notice.tsx";
import { memberTitle } from "./member-name.ts";

interface RemoveMemberDialogProps {
  readonly project: string;
  readonly member: Member;
  readonly onClose: () => void;
}

const ownRemoval = "You lose your own role here, and cannot take it back yourself.";
const removal = "The role ends within five seconds everywhere: in sessions, tokens and streams.";

export function RemoveMemberDialog({ project, member, onClose }: RemoveMemberDialogProps) {
  const failure = useSignal<unknown>(undefined);
  const isSelf = member.member === self.value?.personId;
  const remove = () => {
    service
      .callEmpty("removeMember", { params: { project, member: member.member } })
      .then(isSelf ? loadSelf : onClose)
      .catch((error: unknown) => (failure.value = error));
  };
  return (
    <Dialog title={`Remove ${memberTitle(member)} from ${project}?`} onClose={onClose}>
      <MaybeError error={failure.value} />
      <p>{isSelf ? ownRemoval : removal}</p>
      <p class="soft">Roles by other groups stay.</p>
      <DialogRemovalEnd keep="Keep" onKeep={onClose} remove="Remove" onRemove={remove} />
    </Dialog>
  );
}
