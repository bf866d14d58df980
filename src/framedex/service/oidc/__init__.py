"""Log-in by an OpenID Connect provider: its protocol. It needs the extra ``oidc``."""
