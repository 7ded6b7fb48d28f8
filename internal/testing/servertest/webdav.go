package servertest

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/statecrypt/terraform-provider-statecrypt/internal/shared/testkit"
	"github.com/statecrypt/terraform-provider-statecrypt/internal/testing/nettest"
)

// StartApache starts a WebDAV server with Apache's mod_dav, and returns its URL. STATECRYPT_APACHE names the binary.
// The server is stopped at the end of the test.
func StartApache(t *testing.T) string {
	t.Helper()
	program := testkit.Program(t, "STATECRYPT_APACHE")
	dir, port := folder(t), nettest.Port(t)
	config := write(t, dir, fmt.Sprintf(`
ServerRoot %[1]q
ServerName 127.0.0.1
Listen 127.0.0.1:%[2]s
LoadModule mpm_event_module %[3]s/mod_mpm_event.so
LoadModule authz_core_module %[3]s/mod_authz_core.so
LoadModule dav_module %[3]s/mod_dav.so
LoadModule dav_fs_module %[3]s/mod_dav_fs.so
User nobody
Group nogroup
PidFile %[1]s/pid
ErrorLog /dev/stderr
DavLockDB %[1]s/locks
DocumentRoot %[1]s/files
<Directory %[1]s/files>
  Dav On
  Require all granted
</Directory>
`, dir, port, beside(t, program, "apache2/modules")))
	return serving(t, port, program, "-X", "-f", config)
}

// StartLighttpd starts a WebDAV server with lighttpd's mod_webdav, and returns its URL. STATECRYPT_LIGHTTPD names the
// binary. The server is stopped at the end of the test.
func StartLighttpd(t *testing.T) string {
	t.Helper()
	program := testkit.Program(t, "STATECRYPT_LIGHTTPD")
	dir, port := folder(t), nettest.Port(t)
	config := write(t, dir, fmt.Sprintf(`
server.document-root = "%[1]s/files"
server.bind = "127.0.0.1"
server.port = %[2]s
server.modules = ("mod_webdav")
webdav.activate = "enable"
webdav.sqlite-db-name = "%[1]s/locks"
`, dir, port))
	return serving(t, port, program, "-D", "-f", config, "-m", beside(t, program, "lighttpd"))
}

// StartNginx starts a WebDAV server with nginx and its dav-ext module, and returns its URL. STATECRYPT_NGINX names the
// binary. The server is stopped at the end of the test.
func StartNginx(t *testing.T) string {
	t.Helper()
	program := testkit.Program(t, "STATECRYPT_NGINX")
	dir, port := folder(t), nettest.Port(t)
	config := write(t, dir, fmt.Sprintf(`
load_module %[3]s/ngx_http_dav_ext_module.so;
daemon off;
master_process off;
pid %[1]s/pid;
error_log stderr;
events {}
http {
  access_log off;
  client_body_temp_path %[1]s/bodies;
  dav_ext_lock_zone zone=locks:1m;
  server {
    listen 127.0.0.1:%[2]s;
    root %[1]s/files;
    location / {
      dav_methods PUT DELETE MKCOL COPY MOVE;
      dav_ext_methods PROPFIND OPTIONS LOCK UNLOCK;
      dav_ext_lock zone=locks;
    }
  }
}
`, dir, port, beside(t, program, "nginx/modules")))
	return serving(t, port, program, "-e", "stderr", "-p", dir, "-c", config)
}

// StartRclone starts a WebDAV server with rclone, and returns its URL. STATECRYPT_RCLONE names the binary. The server
// is stopped at the end of the test.
func StartRclone(t *testing.T) string {
	t.Helper()
	program := testkit.Program(t, "STATECRYPT_RCLONE")
	port := nettest.Port(t)
	return serving(t, port, program, "serve", "webdav", filepath.Join(folder(t), "files"), "--addr", "127.0.0.1:"+port)
}

// folder returns a new folder that contains a folder "files". Everyone may write to both, because the server may run
// as another user.
func folder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, path := range []string{filepath.Dir(dir), dir, filepath.Join(dir, "files")} {
		err := os.MkdirAll(path, 0o700)
		if err == nil {
			err = os.Chmod(path, 0o777) //nolint:gosec // only tests write there
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func write(t *testing.T, dir, config string) (path string) {
	t.Helper()
	path = filepath.Join(dir, "config")
	if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// beside returns the folder with a program's modules, as Debian installs it: next to the folder of the program. If
// there is none, the test is skipped.
func beside(t *testing.T, program, name string) string {
	t.Helper()
	path := filepath.Join(filepath.Dir(filepath.Dir(program)), "lib", name)
	if _, err := os.Stat(path); err != nil {
		t.Skip("the modules of the server are not where Debian has them: ", err)
	}
	return path
}

// serving starts a server, and waits until it responds.
func serving(t *testing.T, port, program string, args ...string) string {
	t.Helper()
	url := "http://127.0.0.1:" + port
	Start(t, program, args).Await(t, func() bool {
		resp, err := http.Get(url) //nolint:gosec,noctx // the request ends with the server
		if err != nil {
			return false
		}
		return resp.Body.Close() == nil
	})
	return url
}
