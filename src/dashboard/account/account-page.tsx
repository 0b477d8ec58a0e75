import { self } from "../session/session-state.ts";
import { PageHead } from "../shared/page-head.tsx";
import { MembershipCard } from "./membership-card.tsx";
import { PasskeyCard } from "./passkey-card.tsx";
import { SessionCard } from "./session-card.tsx";

/** The person who is signed in: passkeys, where else, and in which projects. */
export function AccountPage() {
  return (
    <main id="main">
      <PageHead title="Account" sign={<span class="dim">{self.value?.name}</span>} />
      <div class="sheet">
        <PasskeyCard />
        <SessionCard />
        <MembershipCard />
      </div>
    </main>
  );
}
