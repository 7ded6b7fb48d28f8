package sops

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/zclconf/go-cty/cty"

	"github.com/statecrypt/terraform-provider-statecrypt/encryption/attr"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/driver"
	"github.com/statecrypt/terraform-provider-statecrypt/encryption/unstable"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/fault"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/keyfile"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/lazyregexp"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/outside"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/recognize"
)

// services calls the key services that the settings allow. The methods aws, gcp, azure and vault either
// reject a key or return a function that calls the service. They do not contact the service themselves.
type services struct {
	address string // the method's address, for errors
	blocks  []driver.Block[driver.KeyProvider]
	env     attr.LookupEnv // nil if environment variables must not be used, so that the clouds cannot be called

	vaults                   []string // normalized names of transit engines; see vaultOf
	vaultToken, vaultSpace   string
	ownToken                 bool // whether vaultToken comes from the configuration, not from a variable
	awsKeys, roles, profiles []string
	gcpKeys                  []string
	azureVaults              []string // normalized URLs of Azure vaults
	useMSI                   bool
	allowCommands            bool // whether to run commands that the environment's credentials name

	unprotected *atomic.Pointer[driver.Warning] // the warning of a key service that was called; nil if there is none
}

func newServices(v attr.Values, blocks []driver.Block[driver.KeyProvider]) services {
	s := services{
		address: v.Address(), blocks: blocks, env: v.Environment(),
		vaultToken: v.String("vault_token"), vaultSpace: v.String("vault_namespace"), ownToken: v.Hands("vault_token"),
		profiles: v.Strings("allowed_aws_profiles"), gcpKeys: split(v.Strings("allowed_gcp_keys")),
		useMSI: v.Bool("azure_use_msi"), unprotected: new(atomic.Pointer[driver.Warning]),
		allowCommands: v.LeadsToCommand("allowed_aws_profiles", "allowed_aws_keys", "allowed_gcp_keys", "allowed_azure_vaults") == nil,
	}
	for _, key := range split(v.Strings("allowed_aws_keys")) {
		arn, _, _ := strings.Cut(key, "+arn:")
		s.awsKeys = append(s.awsKeys, arn)
	}
	for _, key := range split(v.Strings("allowed_aws_roles")) {
		if _, role, both := strings.Cut(key, "+arn:"); both {
			key = "arn:" + role
		}
		s.roles = append(s.roles, key)
	}
	for _, address := range split(v.Strings("allowed_vault_addresses")) {
		vault, _ := parseVault(address)
		s.vaults = append(s.vaults, vault)
	}
	for _, address := range v.Strings("allowed_azure_vaults") {
		o, _ := origin(address)
		s.azureVaults = append(s.azureVaults, cmp.Or(o, anyKey))
	}
	return s
}

func isAzureVault(text string) bool {
	o, _ := origin(text)
	return text == anyKey || strings.HasPrefix(o, "https:")
}

func checkVaults(text string) error {
	for _, address := range split([]string{text}) {
		if _, ok := parseVault(address); !ok {
			return errors.New("this is not the URL of a server or of a transit engine; write a URL like " +
				"https://vault.example.com:8200 or https://vault.example.com:8200/v1/sops")
		}
	}
	return nil
}

func parseVault(address string) (vault string, ok bool) {
	server, rest, _ := strings.Cut(address, "/v1/")
	o, ok := origin(server)
	engine, _, _ := strings.Cut(rest, "/keys/")
	return vaultOf(o, engine), ok && (rest == "" || engineName.MatchString(strings.Trim(engine, "/")))
}

// split returns the names in texts, separated by commas and without spaces, because a variable of
// terraform-backend-git contains several. An AWS key may be followed by the role to assume. A Vault key is a
// URL with a path.
func split(all []string) []string {
	var out []string
	for _, text := range all {
		out = append(out, strings.FieldsFunc(strings.ReplaceAll(text, " ", ""), func(r rune) bool { return r == ',' })...)
	}
	return out
}

const (
	anyKey   = "*"  // allows all keys of a cloud
	maxNamed = 1024 // the maximum size in bytes of a name in an error
)

// permit returns an error unless the list in an attribute contains a name from the file.
func permit(attribute string, allowed []string, named string) error {
	if slices.Contains(allowed, named) {
		return nil
	}
	if len(allowed) == 0 {
		return fmt.Errorf("the file names %[2]s, but %[1]s is empty; if it is yours, set %[1]s = [%[2]s]", attribute,
			outside.Quoted(named, maxNamed))
	}
	return fmt.Errorf("the file names %s, but %s does not contain it; if it is yours, add it to that list", outside.Quoted(named, maxNamed),
		attribute)
}

// permitCloud works like permit, but the list may contain "*", because requests to the clouds do not send
// secrets to unknown servers.
func permitCloud(attribute string, allowed []string, named string) error {
	if slices.Contains(allowed, anyKey) {
		return nil
	}
	return permit(attribute, allowed, named)
}

// origin returns the normalized scheme, host and port of a URL. It returns false if address is not a server
// URL or has a path.
func origin(address string) (string, bool) {
	u := recognize.Server(address)
	if u == nil || strings.Trim(u.EscapedPath(), "/") != "" {
		return "", false
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port), true
}

type opener = func(context.Context) ([]byte, error)

// These patterns match names of engines and keys, which become part of a request path. They do not match
// names that consist only of dots, which would redirect the request, for example to sys/seal.
var (
	engineName = lazyregexp.New(`^[0-9A-Za-z_-][0-9A-Za-z_.-]*(/[0-9A-Za-z_-][0-9A-Za-z_.-]*)*$`)
	transitKey = lazyregexp.New(`^[0-9A-Za-z_-][0-9A-Za-z_.-]*$`)
)

// vaultKind is the kind of key provider that calls Vault and OpenBao. It is the only kind that may get a
// secret of the configuration.
const vaultKind = "openbao"

// vaultOf returns the name of an engine in allowed_vault_addresses: the server URL, followed by the path
// unless it is the default "transit". An engine with another path may be of another kind, and the request
// would write to it.
func vaultOf(server, engine string) string {
	if engine = strings.Trim(engine, "/"); engine == "" || engine == "transit" {
		return server
	}
	return server + "/v1/" + engine
}

func (s services) vault(k masterKey) (opener, error) {
	address, ok := origin(k.VaultAddress)
	if !ok {
		return nil, errors.New("the file has no valid address of a Vault server; restore an intact copy")
	}
	if !engineName.MatchString(strings.Trim(k.EnginePath, "/")) || !transitKey.MatchString(k.KeyName) {
		return nil, errors.New("the file has no valid name of a transit engine or key; restore an intact copy")
	}
	if err := permit("allowed_vault_addresses", s.vaults, vaultOf(address, k.EnginePath)); err != nil {
		return nil, err
	}
	attrs := map[string]cty.Value{
		"address":             cty.StringVal(address),
		"transit_engine_path": cty.StringVal(strings.Trim(k.EnginePath, "/")),
		"key_name":            cty.StringVal(k.KeyName),
	}
	set(attrs, "token", s.vaultToken)
	set(attrs, "namespace", s.vaultSpace)
	ask, err := s.ask(vaultKind, attrs, map[string]any{"ciphertext": []byte(k.Sealed)})
	if err != nil || s.vaultToken != "" {
		return ask, err
	}
	return func(ctx context.Context) ([]byte, error) {
		token := savedToken()
		set(attrs, "token", token)
		part, err := ask(ctx)
		if errors.Is(err, driver.ErrNoKey) && token == "" { // an agent may accept requests without a token
			return nil, fault.With(fmt.Errorf("%w: the server requires a token", driver.ErrNoKey),
				"set the argument vault_token, or VAULT_TOKEN")
		}
		return part, err
	}, nil
}

// savedToken returns the token that "vault login" saved, or an empty string if there is none. If the server
// requires a token, its response will say so.
func savedToken() string {
	token, _ := keyfile.ReadText("~/.vault-token")
	return strings.TrimSpace(string(token))
}

// set sets an attribute unless value is empty.
func set(attrs map[string]cty.Value, name, value string) {
	if value != "" {
		attrs[name] = cty.StringVal(value)
	}
}

// awsKey matches ARNs of keys and aliases. The region becomes part of a host name. See
// https://docs.aws.amazon.com/kms/latest/developerguide/concepts.html.
var awsKey = lazyregexp.New(`^arn:aws[a-z-]*:kms:([a-z]+(?:-[a-z]+)+-[0-9]+):[0-9]+:(?:key|alias)/[0-9A-Za-z/_-]+$`)

func (s services) aws(k masterKey) (opener, error) {
	arn := awsKey.FindStringSubmatch(k.ARN)
	if arn == nil {
		return nil, errors.New("the file has no valid ARN of an AWS KMS key; restore an intact copy")
	}
	if err := permitCloud("allowed_aws_keys", s.awsKeys, k.ARN); err != nil {
		return nil, err
	}
	if k.Role != "" {
		if err := permit("allowed_aws_roles", s.roles, k.Role); err != nil {
			return nil, err
		}
	}
	if k.Profile != "" {
		if err := permit("allowed_aws_profiles", s.profiles, k.Profile); err != nil {
			return nil, fmt.Errorf("%w. If it belongs to the writer of the file, remove aws_profile from the file, because no MAC covers it", err)
		}
	}
	wrapped, err := base64.StdEncoding.DecodeString(k.Sealed)
	if err != nil {
		return nil, errNotBase64
	}
	attrs := map[string]cty.Value{
		"kms_key_id": cty.StringVal(k.ARN),
		"key_spec":   cty.StringVal("AES_256"),
		"region":     cty.StringVal(arn[1]),
	}
	set(attrs, "profile", k.Profile)
	if k.Role != "" {
		attrs["assume_role"] = cty.ObjectVal(map[string]cty.Value{"role_arn": cty.StringVal(k.Role), "session_name": cty.StringVal("sops")})
	}
	return s.cloud("aws_kms", attrs, map[string]any{"ciphertext_blob": wrapped, "encryption_context": k.Context})
}

var errNotBase64 = errors.New("the data key in the file is damaged: it is not base64")

var gcpKey = lazyregexp.New(`^projects/[0-9A-Za-z.:_-]+/locations/[0-9a-z-]+/keyRings/[0-9A-Za-z_-]+/cryptoKeys/[0-9A-Za-z_-]+$`)

func (s services) gcp(k masterKey) (opener, error) {
	if !gcpKey.MatchString(k.ResourceID) {
		return nil, errors.New("the file has no valid resource name of a Google Cloud KMS key; restore an intact copy")
	}
	if err := permitCloud("allowed_gcp_keys", s.gcpKeys, k.ResourceID); err != nil {
		return nil, err
	}
	wrapped, err := base64.StdEncoding.DecodeString(k.Sealed)
	if err != nil {
		return nil, errNotBase64
	}
	return s.cloud("gcp_kms", map[string]cty.Value{
		"kms_encryption_key": cty.StringVal(k.ResourceID),
		"key_length":         cty.NumberIntVal(keyLength),
	}, map[string]any{"ciphertext": wrapped})
}

// azureVault matches URLs of vaults and managed HSMs in Microsoft's own domains; see
// https://learn.microsoft.com/azure/key-vault/general/about-keys-secrets-certificates#dns-suffixes-for-object-identifiers.
var azureVault = lazyregexp.New(`^https://[0-9a-z-]+\.(?:vault|managedhsm)\.(?:azure\.net|azure\.cn|usgovcloudapi\.net):443$`)

func (s services) azure(k masterKey) (opener, error) {
	address, ok := origin(k.VaultURL)
	if !ok {
		return nil, errors.New("the file has no valid URL of an Azure vault; restore an intact copy")
	}
	if !azureVault.MatchString(address) || !slices.Contains(s.azureVaults, anyKey) { // "*" is for Microsoft's hosts only
		if err := permit("allowed_azure_vaults", s.azureVaults, address); err != nil {
			return nil, err
		}
	}
	wrapped, err := base64.RawURLEncoding.DecodeString(k.Sealed)
	if err != nil {
		return nil, errNotBase64
	}
	attrs := map[string]cty.Value{
		"vault_uri":      cty.StringVal(strings.TrimSuffix(address, ":443")),
		"vault_key_name": cty.StringVal(k.Name),
		"key_length":     cty.NumberIntVal(keyLength),
		"use_msi":        cty.BoolVal(s.useMSI),
	}
	// Sops uses the variables of Azure's SDK; OpenTofu uses others.
	for attr, name := range map[string]string{
		"tenant_id": "AZURE_TENANT_ID", "client_id": "AZURE_CLIENT_ID", "client_secret": "AZURE_CLIENT_SECRET",
		"client_certificate_path": "AZURE_CLIENT_CERTIFICATE_PATH", "client_certificate_password": "AZURE_CLIENT_CERTIFICATE_PASSWORD",
	} {
		value, _ := s.env.Get(name)
		set(attrs, attr, value)
	}
	if _, federated := s.env.Get("AZURE_FEDERATED_TOKEN_FILE"); federated {
		attrs["use_aks_workload_identity"] = cty.True
	}
	switch host := strings.TrimSuffix(address, ":443"); {
	case strings.HasSuffix(host, ".azure.cn"):
		attrs["environment"] = cty.StringVal("china")
	case strings.HasSuffix(host, ".usgovcloudapi.net"):
		attrs["environment"] = cty.StringVal("usgovernment")
	}
	return s.cloud("azure_vault", attrs, map[string]any{"ciphertext": wrapped, "key_version": k.Version, "algo": "RSA-OAEP-256"})
}

// cloud works like ask, with the identity from the environment. It returns an error if the environment must
// not be used.
func (s services) cloud(kind string, attrs map[string]cty.Value, stored any) (opener, error) {
	if s.env == nil {
		return nil, fmt.Errorf("%w: this key service needs the identity from the environment, but the environment must not be used",
			driver.ErrNoKey)
	}
	return s.ask(kind, attrs, stored)
}

// ask returns a function that calls a key service through the key provider of the given kind.
func (s services) ask(kind string, attrs map[string]cty.Value, stored any) (opener, error) {
	i := slices.IndexFunc(s.blocks, func(b driver.Block[driver.KeyProvider]) bool { return b.Name == kind })
	if i < 0 {
		return nil, fmt.Errorf("%w: this program does not support this key service", driver.ErrNoKey)
	}
	document, err := json.Marshal(stored)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) ([]byte, error) {
		block := s.blocks[i]
		entry := unstable.NewEntry(s.address+" ("+kind+")", block.Table, attrs)
		// Unless the token comes from the configuration, treat these settings as part of the environment, so
		// that variables may complete them.
		for name, setting := range entry.Settings {
			setting.FromEnvironment = kind != vaultKind || !s.ownToken
			entry.Settings[name] = setting
		}
		values, err := entry.Resolve(block.Table, unstable.Scope{Lookup: s.env, AllowCommands: s.allowCommands})
		if err != nil {
			return nil, err
		}
		provider, err := block.Build(values)
		if err != nil {
			return nil, err
		}
		if c, ok := provider.(driver.Closer); ok {
			defer c.Close() // the key provider is not used elsewhere
		}
		key, err := provider.Key(ctx, nil, document)
		if w, ok := provider.(driver.Warner); ok {
			if warning := w.Warning(); warning != (driver.Warning{}) {
				s.unprotected.Store(&warning)
			}
		}
		return key, err
	}, nil
}
