/** Tables of those who sign in; columns as in `Schema`. */
export interface PeopleSchema {
  people: PeopleTable;
  members: MembersTable;
  sign_in_links: SignInLinksTable;
  sessions: SessionsTable;
  passkeys: PasskeysTable;
}

/** Everybody who has signed in. */
interface PeopleTable {
  id: string;
  name: string;
  email: string | null;
  /** Single sign-on that the person is known from, with its name there; null for links. */
  issuer: string | null;
  subject: string | null;
  /** As of the last sign-in, a JSON list. */
  groups: string;
  created_at: string;
  /** Last sign-in at the issuer; null for links. */
  confirmed_at: string | null;
  /** 1 for who has ever signed in with a role in a project, else 0. */
  had_role: number;
}

/** Roles of people and of groups in projects. */
interface MembersTable {
  project: string;
  /** Id of a person, or `group:` and a name. */
  member: string;
  /** Whose group it is; null for a person. */
  issuer: string | null;
  role: string;
  created_at: string;
}

/** Links by which a person can sign in once; a row is deleted when its link is used. */
interface SignInLinksTable {
  /** SHA-256 of the link's secret. */
  hash: string;
  person_id: string;
  expires_at: string;
  /** 1 for those that count until somebody with a role has signed in, else 0. */
  is_first: number;
}

interface PasskeysTable {
  id: string;
  person_id: string;
  name: string;
  /** The authenticator's name of it, base64url. */
  credential_id: string;
  /** Base64. */
  public_key: string;
  /** How often it was used, where its authenticator counts; else 0. */
  counter: number;
  created_at: string;
  last_used_at: string | null;
}

/** People who are signed in; a row is deleted when they sign out. */
interface SessionsTable {
  id: string;
  /** SHA-256 of the cookie's secret. */
  hash: string;
  person_id: string;
  /** Where requests of the session act. */
  project: string;
  method: string;
  browser: string;
  created_at: string;
  expires_at: string;
  last_used_at: string | null;
}
