package provider

// mistakenFiles are files that are something else than a state, and paths to no file.
func (p *mistakenPlace) mistakenFiles() []mistake {
	good := textProvider(staticText)
	read := p.in("sealed")
	kubeform := settings(methodBlock("kubeform {\nkey = \"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=\"\n}"))
	object := func(kind, version, name string) string {
		return "object {\napi_version = \"modules.kubeform.com/" + version + "\"\nkind = \"" + kind + "\"\nname = \"" + name + "\"\n}"
	}
	fromPath := func(path string) string { return reads("s", fromFile(path)) }
	return []mistake{
		// What the file is.
		{name: "empty file", provider: good, body: p.in("empty")},
		{name: "text file", provider: good, body: p.in("text")},
		{name: "cut file", provider: good, body: p.in("cut")},
		{name: "JSON of something else", provider: good, body: p.in("json")},
		{name: "encrypted data alone", provider: good, body: p.in("part")},
		{name: "pointer of LFS", provider: good, body: p.in("lfs")},
		{name: "conflict", provider: good, body: p.in("conflict")},
		{name: "file of Ansible Vault", provider: good, body: p.in("ansible")},
		{name: "web page", provider: good, body: p.in("page")},
		{name: "UTF-16", provider: good, body: p.in("utf16")},
		{name: "random bytes", provider: good, body: p.in("random")},
		{name: "plan file, aes_gcm", provider: good, body: p.in("plan")},
		{name: "plan file", body: p.in("plan", `method = "unencrypted"`)},
		{name: "record of a backend", body: p.in("record", `method = "unencrypted"`)},
		{name: "state of a future version", body: p.in("future", `method = "unencrypted"`)},
		{name: "envelope of a future version", provider: good, body: p.in("newer")},
		{name: "JSON array as a state", provider: good, body: p.in("array")},
		{name: "configuration as a state", provider: good, body: p.in("hcl")},
		{name: "lock of a state", provider: good, body: p.in("lock")},
		{name: "text of Kubeform, nothing for it", provider: good, body: p.in("kubeform")},
		{name: "values of variables as a state", provider: good, body: p.in("tfvars")},
		{name: "zip with a state", provider: good, body: p.in("zip")},
		{name: "stack of Pulumi", provider: good, body: p.in("pulumi", `method = "unencrypted"`)},
		{name: "state in git-crypt", provider: good, body: p.in("git-crypt")},
		{name: "state twice", provider: good, body: p.in("twice")},
		{name: "state after a log", provider: good, body: p.in("log")},
		{name: "secret of Kubernetes", provider: good, body: p.in("secret")},
		{name: "state with a serial in quotes", provider: good, body: p.in("edited", `method = "unencrypted"`)},
		// Objects of Kubeform.
		{name: "kubeform, hexadecimal key", body: p.in("kubeform"),
			provider: settings(methodBlock("kubeform {\nkey = \"" + staticKey + "\"\n}"))},
		{name: "kubeform, key of 32 characters", body: p.in("kubeform"),
			provider: settings(methodBlock("kubeform {\nkey = \"01234567890123456789012345678901\"\n}"))},
		{name: "manifest without object", body: p.in("manifest"), provider: kubeform},
		{name: "manifest in YAML without object", body: p.in("yaml"), provider: kubeform},
		{name: "manifest without object, aes_gcm", body: p.in("yaml"), provider: good},
		{name: "manifest, kind in lowercase", body: p.in("yaml", object("vpc", "v1alpha1", "network")), provider: kubeform},
		{name: "manifest, another name", body: p.in("yaml", object("VPC", "v1alpha1", "net")), provider: kubeform},
		{name: "manifest, another version", body: p.in("yaml", object("VPC", "v1", "network")), provider: kubeform},
		{name: "manifest without a status", body: p.in("bare", object("VPC", "v1alpha1", "network")), provider: kubeform},
		// Paths.
		{name: "no such file", cli: true, provider: good, body: p.in("gone")},
		{name: "a directory", provider: good, body: p.in(".")},
		{name: "path, empty", body: reads("s", fromFile("")), provider: good},
		{name: "path with a line break", body: reads("s", fromFile(p.dir+"/sealed"+"\n")), provider: good},
		{name: "path in quotes", body: reads("s", fromFile(`"`+p.dir+"/sealed"+`"`)), provider: good},
		{name: "path with ~", env: "HOME=" + p.dir, body: reads("s", fromFile("~/gone")), provider: good},
		{name: "path as an address", body: reads("s", fromFile("https://state.example.com/network")), provider: good},
		{name: "path as a URL", body: reads("s", fromFile("file://"+p.dir+"/sealed")), provider: good},
		{name: "path on Windows", body: reads("s", fromFile(`C:\states\network.tfstate`)), provider: good},
		{name: "path is what is in the file", cli: true, provider: good,
			body: reads("s", "file {\npath = "+quote(`{"version":4,"outputs":{"p":{"value":"c4n4ry"}}}`)+"\n}")},
		{name: "path is null", cli: true, provider: good, body: reads("s", "file {\npath = null\n}")},
		{name: "path, not of a module", provider: good, body: fromPath("network.tfstate")},
		{name: "path, pattern", provider: good, body: fromPath(p.dir + "/*.tfstate")},
		{name: "path, variable of Windows", provider: good, body: fromPath("%%USERPROFILE%%/network.tfstate")},
		{name: "path, of Windows, for a key", provider: settings(keyBlock(`static {
key_file = "C:\\keys\\state.key"
}`)), body: read},
		{name: "path, standard input", cli: true, provider: good, body: fromPath("-")},
		{name: "path, below a file", provider: good, body: fromPath(p.dir + "/sealed/terraform.tfstate")},
		{name: "path, workspaces in a file", provider: good, body: reads("s", `workspace = "prod"`,
			"file {\npath = \"s\"\nworkspace_dir = "+quote(p.dir+"/sealed")+"\n}")},
		{name: "path with backslashes", provider: settings(), body: reads("s", fromFile("network\\\\state.tfstate"))},
	}
}
