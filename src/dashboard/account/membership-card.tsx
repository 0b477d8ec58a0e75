import { roleTable } from "../../contract/people/role.ts";
import type { Self } from "../../contract/people/session.ts";
import { self } from "../session/session-state.ts";

/** What the person may do, and where. */
export function MembershipCard() {
  const { projects = [], personId } = self.value ?? {};
  return (
    <section class="card c4" aria-labelledby="memberships">
      <header>
        <h2 id="memberships">Projects</h2>
      </header>
      <dl class="pairs">
        {projects.map((membership) => (
          <MembershipPair key={membership.name} {...membership} />
        ))}
        <div class="pair">
          <dt>Your id</dt>
          <dd class="mono">{personId}</dd>
        </div>
      </dl>
    </section>
  );
}

function MembershipPair({ name, role }: Self["projects"][number]) {
  return (
    <div class="pair">
      <dt>{name}</dt>
      <dd title={roleTable[role].does}>{role}</dd>
    </div>
  );
}
