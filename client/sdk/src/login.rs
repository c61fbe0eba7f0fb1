use api::{
    ACLAuthMethodListStub, ACLBindingRuleListStub, ACLLoginRequest, ACLOIDCAuthURLRequest,
    ACLOIDCAuthURLResponse, ACLOIDCCompleteAuthRequest, VariableErasure,
};
use model::document::{ACLAuthMethod, ACLBindingRule, ACLToken};
use reqwest::Method;

use crate::Error;
use crate::client::{Answer, Client, Query, segment};

/// Logging in: auth methods by their names, binding rules by their ids.
impl Client {
    /// `GET /v1/acl/auth-methods`: takes `prefix`. Needs no token.
    pub async fn auth_methods(&self, query: Query) -> Result<Answer<Vec<ACLAuthMethodListStub>>, Error> {
        self.get("/v1/acl/auth-methods", query).await
    }

    /// `GET /v1/acl/auth-method/:name`: without its secrets.
    pub async fn auth_method(&self, name: &str) -> Result<ACLAuthMethod, Error> {
        Ok(self.get(&format!("/v1/acl/auth-method/{}", segment(name)), Query::new()).await?.value)
    }

    /// `PUT /v1/acl/auth-method`.
    pub async fn create_auth_method(&self, method: &ACLAuthMethod) -> Result<ACLAuthMethod, Error> {
        Ok(self.put("/v1/acl/auth-method", Query::new(), method).await?.value)
    }

    /// `PUT /v1/acl/auth-method/:name`: what is empty stays as it is.
    pub async fn update_auth_method(&self, method: &ACLAuthMethod) -> Result<ACLAuthMethod, Error> {
        let path = format!("/v1/acl/auth-method/{}", segment(&method.name));
        Ok(self.put(&path, Query::new(), method).await?.value)
    }

    /// `DELETE /v1/acl/auth-method/:name?forget`: deletes it, and has all servers erase its secrets. Ours.
    pub async fn forget_auth_method(&self, name: &str) -> Result<VariableErasure, Error> {
        let path = format!("/v1/acl/auth-method/{}", segment(name));
        Ok(self.delete(&path, Query::new().flag("forget", true)).await?.value)
    }

    /// `GET /v1/acl/auth-method/:name?forgotten`: how far that is, the newest first. Ours.
    pub async fn auth_method_erasures(&self, name: &str) -> Result<Vec<VariableErasure>, Error> {
        let path = format!("/v1/acl/auth-method/{}", segment(name));
        Ok(self.get(&path, Query::new().flag("forgotten", true)).await?.value)
    }

    /// `DELETE /v1/acl/auth-method/:name`.
    pub async fn delete_auth_method(&self, name: &str) -> Result<(), Error> {
        let path = format!("/v1/acl/auth-method/{}", segment(name));
        self.send(self.request(Method::DELETE, &path, Query::new())).await.map(drop)
    }

    /// `GET /v1/acl/binding-rules`: takes `prefix`.
    pub async fn binding_rules(&self, query: Query) -> Result<Answer<Vec<ACLBindingRuleListStub>>, Error> {
        self.get("/v1/acl/binding-rules", query).await
    }

    /// `GET /v1/acl/binding-rule/:id`.
    pub async fn binding_rule(&self, id: &str) -> Result<ACLBindingRule, Error> {
        Ok(self.get(&format!("/v1/acl/binding-rule/{}", segment(id)), Query::new()).await?.value)
    }

    /// `PUT /v1/acl/binding-rule`: makes one if it has no id yet, else changes it.
    pub async fn apply_binding_rule(&self, rule: &ACLBindingRule) -> Result<ACLBindingRule, Error> {
        Ok(self.put("/v1/acl/binding-rule", Query::new(), rule).await?.value)
    }

    /// `DELETE /v1/acl/binding-rule/:id`.
    pub async fn delete_binding_rule(&self, id: &str) -> Result<(), Error> {
        let path = format!("/v1/acl/binding-rule/{}", segment(id));
        self.send(self.request(Method::DELETE, &path, Query::new())).await.map(drop)
    }

    /// `PUT /v1/acl/login`: a token for a JWT.
    pub async fn login(&self, request: &ACLLoginRequest) -> Result<ACLToken, Error> {
        Ok(self.put("/v1/acl/login", Query::new(), request).await?.value)
    }

    /// `PUT /v1/acl/oidc/auth-url`: where somebody logs in.
    pub async fn oidc_auth_url(&self, request: &ACLOIDCAuthURLRequest) -> Result<String, Error> {
        let response: ACLOIDCAuthURLResponse =
            self.put("/v1/acl/oidc/auth-url", Query::new(), request).await?.value;
        Ok(response.auth_url)
    }

    /// `PUT /v1/acl/oidc/complete-auth`: a token for what the provider has sent back.
    pub async fn complete_oidc_auth(&self, request: &ACLOIDCCompleteAuthRequest) -> Result<ACLToken, Error> {
        Ok(self.put("/v1/acl/oidc/complete-auth", Query::new(), request).await?.value)
    }
}
