// Entering a token, or logging in with an auth method of the cluster.

import { signal } from "@preact/signals";
import type { JSX } from "preact";
import { put, token, useGet, useToken } from "./api";
import { Dialog, attempt, say } from "./parts";
import { change, go, param, parts } from "./place";

export const isSigningIn = signal(false);

interface Method {
  Name: string;
  Type: string;
}

/** A login that a provider of identities is asked for, for as long as the tab is away. */
interface Begun {
  method: string;
  nonce: string;
  back: string;
}

const BEGUN = "sojourn.login";

/** The address that Nomad's page uses, which providers and auth methods may know already. */
const redirect = (): string => `${location.origin}/ui/settings/tokens`;

/** Works without encryption too, where browsers have no `randomUUID`. */
function nonce(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function begin(method: string): Promise<void> {
  const begun: Begun = { method, nonce: nonce(), back: location.pathname + location.search };
  const asked = { AuthMethodName: method, RedirectURI: redirect(), ClientNonce: begun.nonce };
  const { AuthURL } = await put<{ AuthURL: string }>("/v1/acl/oidc/auth-url", asked);
  if (!AuthURL) throw new Error(`${redirect()} is none of the addresses that the method allows, or its provider cannot be reached`);
  sessionStorage.setItem(BEGUN, JSON.stringify(begun));
  location.assign(AuthURL);
}

/** What a provider has sent somebody back with becomes a token. It leaves the address before anything else is read. */
export async function returned(): Promise<void> {
  const [code, state, iss, refusal] = [param("code"), param("state"), param("iss"), param("error_description") || param("error")];
  if (parts.value[0] !== "settings" || !(code && state) && !refusal) return;
  change({ code: "", state: "", iss: "", error: "", error_description: "", scope: "", session_state: "" }, false);
  const kept = sessionStorage.getItem(BEGUN);
  sessionStorage.removeItem(BEGUN);
  if (refusal) return say(`Log in: ${refusal}`, true);
  if (!kept) return say("Log in: this tab has begun no login", true);
  const begun = JSON.parse(kept) as Begun;
  await attempt("Log in", async () => {
    const proof = { AuthMethodName: begun.method, ClientNonce: begun.nonce, State: state, Code: code, Iss: iss, RedirectURI: redirect() };
    useToken((await put<{ SecretID: string }>("/v1/acl/oidc/complete-auth", proof)).SecretID);
    go(begun.back);
  });
}

async function withJwt(method: string, jwt: string): Promise<void> {
  const done = await attempt("Log in", async () => {
    useToken((await put<{ SecretID: string }>("/v1/acl/login", { AuthMethodName: method, LoginToken: jwt.trim() })).SecretID);
  });
  if (done) isSigningIn.value = false;
}

function Methods(): JSX.Element | null {
  const { data } = useGet<Method[]>("/v1/acl/auth-methods", ["ACLAuthMethod"], { now: true, quiet: true });
  if (!data?.length) return null;
  const oidc = data.filter((one) => one.Type === "OIDC");
  const jwt = data.filter((one) => one.Type === "JWT");
  const send = (event: SubmitEvent): void => {
    event.preventDefault();
    const fields = new FormData(event.target as HTMLFormElement);
    void withJwt(String(fields.get("method")), String(fields.get("jwt")));
  };
  return (
    <>
      {oidc.length > 0 && (
        <p class="actions start">
          {oidc.map((one) => (
            <button type="button" onClick={() => void attempt("Log in", () => begin(one.Name))}>
              Log in with {one.Name}
            </button>
          ))}
        </p>
      )}
      {jwt.length > 0 && (
        <form onSubmit={send}>
          <label class="field">
            <span>Auth method</span>
            <select name="method">
              {jwt.map((one) => (
                <option value={one.Name}>{one.Name}</option>
              ))}
            </select>
          </label>
          <label class="field">
            <span>Its token (JWT)</span>
            <input type="password" name="jwt" autocomplete="off" required />
          </label>
          <p class="actions">
            <button type="submit">Log in</button>
          </p>
        </form>
      )}
    </>
  );
}

export function SignIn(): JSX.Element {
  const close = (): void => {
    isSigningIn.value = false;
  };
  const send = (event: SubmitEvent): void => {
    event.preventDefault();
    useToken(String(new FormData(event.target as HTMLFormElement).get("token") ?? ""));
    close();
  };
  return (
    <Dialog title="Token" close={close}>
      <Methods />
      <form onSubmit={send}>
        <label class="field">
          <span>Secret ID. It is kept for this tab until it is closed.</span>
          <input type="password" name="token" autocomplete="off" placeholder={token.value && "another one"} required />
        </label>
        <p class="actions">
          {token.value && (
            <button
              type="button"
              class="danger"
              onClick={() => {
                useToken("");
                close();
              }}
            >
              Forget it
            </button>
          )}
          <button type="button" onClick={close}>
            Leave it
          </button>
          <button type="submit" class="strong">
            Use it
          </button>
        </p>
      </form>
    </Dialog>
  );
}
