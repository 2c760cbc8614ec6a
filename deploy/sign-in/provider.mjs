// Signs anybody in, to try sign-in on one machine: a password is asked for and not checked.
//
//   node provider.mjs http://127.0.0.1:9999 http://127.0.0.1:8000
import Provider from 'oidc-provider';

const [issuer, service] = process.argv.slice(2);
const email = (name) => (name.includes('@') ? name : `${name}@example.org`);
const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'ironlaw',
      token_endpoint_auth_method: 'none',
      redirect_uris: [`${service}/login/callback`],
      post_logout_redirect_uris: [`${service}/signed-out`],
    },
  ],
  claims: { openid: ['sub', 'tenant', 'roles'], email: ['email', 'email_verified'] },
  conformIdTokenClaims: false,
  findAccount: (_, name) => ({
    accountId: name,
    claims: () => ({ sub: name, email: email(name), email_verified: true, tenant: 'default', roles: ['*:*'] }),
  }),
});
provider.listen(new URL(issuer).port, '127.0.0.1', () => console.log(`issuer at ${issuer}`));
