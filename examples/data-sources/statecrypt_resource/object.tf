# A resource that Kubeform manages, from a manifest that holds the object and its
# secret. Its state is rebuilt, and not encrypted.
data "statecrypt_resource" "database_user" {
  file { path = "database-user.yaml" }

  object {
    api_version = "digitalocean.kubeform.com/v1alpha1"
    kind        = "DatabaseUser"
    name        = "app"
    namespace   = "demo"
  }

  method = "unencrypted"
}

output "database_user" { value = data.statecrypt_resource.database_user.attributes.name }
