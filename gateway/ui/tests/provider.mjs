// A provider of identities, as OpenID Connect has them: whoever comes is sent back as Alice.

import { createSign, generateKeyPairSync, randomUUID } from "node:crypto";
import { createServer } from "node:http";

const CLIENT = "page";

export class Provider {
  /** What the next one who comes is refused with, instead of being sent back as Alice. */
  refuses = "";

  static async start() {
    const provider = new Provider();
    const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
    provider.key = privateKey;
    provider.jwk = { ...publicKey.export({ format: "jwk" }), kid: "k", use: "sig", alg: "RS256" };
    provider.codes = new Map();
    provider.server = createServer((request, response) => void provider.answer(request, response));
    await new Promise((resolve) => provider.server.listen(0, "127.0.0.1", resolve));
    provider.url = `http://127.0.0.1:${provider.server.address().port}`;
    return provider;
  }

  /** An auth method of the cluster that trusts this provider. */
  method(redirect) {
    return {
      Name: "sso",
      Type: "OIDC",
      TokenLocality: "local",
      MaxTokenTTL: "1h",
      Config: {
        OIDCDiscoveryURL: this.url,
        OIDCClientID: CLIENT,
        OIDCClientSecret: "between us",
        OIDCEnablePKCE: true,
        OIDCDisableUserInfo: true,
        AllowedRedirectURIs: [redirect],
        ClaimMappings: { sub: "user" },
      },
    };
  }

  token(claims) {
    const part = (value) => Buffer.from(JSON.stringify(value)).toString("base64url");
    const now = Math.floor(Date.now() / 1000);
    const said = `${part({ alg: "RS256", kid: "k" })}.${part({ iss: this.url, aud: CLIENT, sub: "alice", iat: now, exp: now + 300, ...claims })}`;
    return `${said}.${createSign("RSA-SHA256").update(said).sign(this.key).toString("base64url")}`;
  }

  /** One that takes this provider's tokens as they are. */
  jwtMethod() {
    return {
      Name: "ci",
      Type: "JWT",
      TokenLocality: "local",
      MaxTokenTTL: "1h",
      Config: { JWKSURL: `${this.url}/keys`, BoundAudiences: [CLIENT], ClaimMappings: { sub: "user" } },
    };
  }

  async answer(request, response) {
    const url = new URL(request.url, this.url);
    const json = (value) => response.writeHead(200, { "Content-Type": "application/json" }).end(JSON.stringify(value));
    switch (url.pathname) {
      case "/.well-known/openid-configuration":
        return json({ issuer: this.url, jwks_uri: `${this.url}/keys`, authorization_endpoint: `${this.url}/authorize`, token_endpoint: `${this.url}/token` });
      case "/keys":
        return json({ keys: [this.jwk] });
      case "/authorize": {
        const [back, code] = [new URL(url.searchParams.get("redirect_uri")), randomUUID()];
        this.codes.set(code, url.searchParams.get("nonce"));
        const given = this.refuses ? { error: "access_denied", error_description: this.refuses } : { code, iss: this.url };
        for (const [name, value] of Object.entries({ ...given, state: url.searchParams.get("state") })) back.searchParams.set(name, value);
        return response.writeHead(302, { Location: back.href }).end();
      }
      case "/token": {
        let body = "";
        for await (const piece of request) body += piece;
        const code = new URLSearchParams(body).get("code");
        const nonce = this.codes.get(code);
        this.codes.delete(code);
        return nonce ? json({ id_token: this.token({ nonce }), access_token: "a", token_type: "Bearer" }) : response.writeHead(400).end("{}");
      }
      default:
        return response.writeHead(404).end();
    }
  }

  async stop() {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}
