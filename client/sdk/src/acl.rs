use api::{ACLPolicyListStub, ACLTokenListStub, AclBootstrapRequest, VariableErasure};
use model::document::{ACLPolicy, ACLRole, ACLToken};
use reqwest::Method;

use crate::Error;
use crate::client::{Answer, Client, Query, segment};

/// Access control: policies by their names, roles by their ids, tokens by their accessors.
impl Client {
    /// `PUT /v1/acl/bootstrap`: the first token. With an empty secret the cluster draws one.
    pub async fn bootstrap_acl(&self, secret: &str) -> Result<ACLToken, Error> {
        let request = AclBootstrapRequest { bootstrap_secret: secret.to_string() };
        Ok(self.put("/v1/acl/bootstrap", Query::new(), &request).await?.value)
    }

    /// `GET /v1/acl/policies`: takes `prefix`. All of them for who manages, else the caller's own.
    pub async fn acl_policies(&self, query: Query) -> Result<Answer<Vec<ACLPolicyListStub>>, Error> {
        self.get("/v1/acl/policies", query).await
    }

    /// `GET /v1/acl/policy/self`: the caller's own, whole.
    pub async fn own_acl_policies(&self) -> Result<Vec<ACLPolicy>, Error> {
        Ok(self.get("/v1/acl/policy/self", Query::new()).await?.value)
    }

    /// `GET /v1/acl/policy/:name`.
    pub async fn acl_policy(&self, name: &str) -> Result<ACLPolicy, Error> {
        Ok(self.get(&format!("/v1/acl/policy/{}", segment(name)), Query::new()).await?.value)
    }

    /// `PUT /v1/acl/policy/:name`: makes it, or changes it.
    pub async fn apply_acl_policy(&self, policy: &ACLPolicy) -> Result<(), Error> {
        let path = format!("/v1/acl/policy/{}", segment(&policy.name));
        self.send(self.request(Method::PUT, &path, Query::new()).json(policy)).await.map(drop)
    }

    /// `DELETE /v1/acl/policy/:name`.
    pub async fn delete_acl_policy(&self, name: &str) -> Result<(), Error> {
        let path = format!("/v1/acl/policy/{}", segment(name));
        self.send(self.request(Method::DELETE, &path, Query::new())).await.map(drop)
    }

    /// `GET /v1/acl/roles`: takes `prefix`. All of them for who manages, else the caller's own.
    pub async fn acl_roles(&self, query: Query) -> Result<Answer<Vec<ACLRole>>, Error> {
        self.get("/v1/acl/roles", query).await
    }

    /// `GET /v1/acl/role/:id`.
    pub async fn acl_role(&self, id: &str) -> Result<ACLRole, Error> {
        Ok(self.get(&format!("/v1/acl/role/{}", segment(id)), Query::new()).await?.value)
    }

    /// `GET /v1/acl/role/name/:name`.
    pub async fn acl_role_named(&self, name: &str) -> Result<ACLRole, Error> {
        Ok(self.get(&format!("/v1/acl/role/name/{}", segment(name)), Query::new()).await?.value)
    }

    /// `PUT /v1/acl/role`: makes one if it has no id yet, else changes it.
    pub async fn apply_acl_role(&self, role: &ACLRole) -> Result<ACLRole, Error> {
        Ok(self.put("/v1/acl/role", Query::new(), role).await?.value)
    }

    /// `DELETE /v1/acl/role/:id`.
    pub async fn delete_acl_role(&self, id: &str) -> Result<(), Error> {
        let path = format!("/v1/acl/role/{}", segment(id));
        self.send(self.request(Method::DELETE, &path, Query::new())).await.map(drop)
    }

    /// `GET /v1/acl/tokens`: takes `prefix`, `global` and what pages take. Without their secrets.
    pub async fn acl_tokens(&self, query: Query) -> Result<Answer<Vec<ACLTokenListStub>>, Error> {
        self.get("/v1/acl/tokens", query).await
    }

    /// `GET /v1/acl/token/:accessor`: with its secret.
    pub async fn acl_token(&self, accessor: &str) -> Result<ACLToken, Error> {
        Ok(self.get(&format!("/v1/acl/token/{}", segment(accessor)), Query::new()).await?.value)
    }

    /// `GET /v1/acl/token/self`: the one that this client presents.
    pub async fn own_acl_token(&self) -> Result<ACLToken, Error> {
        Ok(self.get("/v1/acl/token/self", Query::new()).await?.value)
    }

    /// `PUT /v1/acl/token`: makes one if it has no accessor yet, else changes it.
    pub async fn apply_acl_token(&self, token: &ACLToken) -> Result<ACLToken, Error> {
        Ok(self.put("/v1/acl/token", Query::new(), token).await?.value)
    }

    /// `DELETE /v1/acl/token/:accessor?forget`: deletes it, and has all servers erase its secret. Ours.
    pub async fn forget_acl_token(&self, accessor: &str) -> Result<VariableErasure, Error> {
        let path = format!("/v1/acl/token/{}", segment(accessor));
        Ok(self.delete(&path, Query::new().flag("forget", true)).await?.value)
    }

    /// `GET /v1/acl/token/:accessor?forgotten`: how far that is, the newest first. Ours.
    pub async fn acl_token_erasures(&self, accessor: &str) -> Result<Vec<VariableErasure>, Error> {
        let path = format!("/v1/acl/token/{}", segment(accessor));
        Ok(self.get(&path, Query::new().flag("forgotten", true)).await?.value)
    }

    /// `DELETE /v1/acl/token/:accessor`.
    pub async fn delete_acl_token(&self, accessor: &str) -> Result<(), Error> {
        let path = format!("/v1/acl/token/{}", segment(accessor));
        self.send(self.request(Method::DELETE, &path, Query::new())).await.map(drop)
    }
}
