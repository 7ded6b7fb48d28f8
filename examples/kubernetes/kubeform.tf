# A resource of Kubeform, which is always in a namespace.
data "statecrypt_resource" "cluster" {
  kubernetes {}

  object {
    api_version = "digitalocean.kubeform.com/v1alpha1"
    kind        = "DatabaseCluster"
    name        = "app-db"
    namespace   = "demo"
  }

  method = "unencrypted"
}

output "database_port" { value = data.statecrypt_resource.cluster.attributes.port }
