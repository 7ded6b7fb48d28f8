package awsauth

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	awsconfig "github.com/aws/aws-sdk-go-v2/config"
)

// TestRunsProgram: a program of a profile counts if the SDK would run it, whatever else the
// profile has.
func TestRunsProgram(t *testing.T) {
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, value := range map[string]string{
		"AWS_CONFIG_FILE": path("config"), "AWS_SHARED_CREDENTIALS_FILE": path("none"), "HOME": dir, "AWS_EC2_METADATA_DISABLED": "true",
		"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_MAX_ATTEMPTS": "1", "AWS_REGION": "eu-west-1",
		"AWS_PROFILE": "", "AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_WEB_IDENTITY_TOKEN_FILE": "",
	} {
		t.Setenv(name, value)
	}
	runs := 0
	const role = "role_arn = arn:aws:iam::111122223333:role/r\n"
	const session = "[sso-session s]\nsso_region = eu-west-1\nsso_start_url = https://s\n"
	for _, others := range []string{"", "aws_access_key_id = a\naws_secret_access_key = b\n", role + "credential_source = Environment\n",
		role + "web_identity_token_file = none\n", "sso_session = s\nsso_account_id = 1\nsso_role_name = r\n", "sso_region = eu-west-1\n",
		"sso_account_id = 1\n", "sso_start_url = https://s\n", "sso_role_name = r\n", "login_session = s\n"} {
		for name, text := range map[string]string{
			"a profile": "[default]\n" + others, "a source": "[default]\n" + role + "source_profile = other\n[profile other]\n" + others,
		} {
			_ = os.Remove(path("ran"))
			text = text + "credential_process = sh -c 'echo x >>" + path("ran") + "'\n" + session
			if err := os.WriteFile(path("config"), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			profile, err := awsconfig.LoadSharedConfigProfile(t.Context(), "default", func(o *awsconfig.LoadSharedConfigOptions) {
				o.ConfigFiles, o.CredentialsFiles = []string{path("config")}, []string{}
			})
			if err != nil {
				continue // and nothing is run
			}
			if cfg, err := awsconfig.LoadDefaultConfig(context.Background()); err == nil {
				_, _ = cfg.Credentials.Retrieve(t.Context())
			}
			_, err = os.Stat(path("ran"))
			if err == nil {
				runs++
			}
			if got := runsProgram(profile); got != (err == nil) {
				t.Errorf("%s: the SDK runs it: %t, and we think %t:\n%s", name, err == nil, got, text)
			}
		}
	}
	if runs != 2 { // of the profile without others
		t.Errorf("the SDK runs %d", runs)
	}
}
