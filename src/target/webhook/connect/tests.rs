//! Tests of opening connections.

use std::net::Ipv4Addr;

use tokio::net::TcpListener;

use super::*;

const PRIVATE: &str = "10.0.0.1:443";
const PUBLIC: &str = "1.1.1.1:443";

fn connector(allow_private: bool) -> Connector {
    Connector {
        allow_private,
        timeout: Duration::from_secs(5),
        resolver: Resolver::new(),
    }
}

fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

async fn listener() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

#[test]
fn only_public_addresses_of_a_host_are_connected_to() {
    let found = addresses(&[PRIVATE, PUBLIC, "[::ffff:10.0.0.1]:443"]);
    let reachable = connector(false).reachable("a", found.clone()).unwrap();
    assert_eq!(reachable, addresses(&[PUBLIC]));
    assert_eq!(
        connector(true).reachable("a", found.clone()).unwrap(),
        found
    );
}

#[test]
fn a_host_with_private_addresses_alone_is_refused() {
    let refused = connector(false).reachable("a", addresses(&[PRIVATE, PRIVATE]));
    let error = refused.unwrap_err();
    assert_eq!(error.cause(), Cause::AddressRefused);
    assert!(
        error
            .to_string()
            .starts_with("a is at 10.0.0.1, a private address")
    );
}

#[test]
fn a_host_without_addresses_is_a_matter_of_dns() {
    let error = connector(true).reachable("a", Vec::new()).unwrap_err();
    assert_eq!(error.cause(), Cause::Dns);
}

#[test]
fn only_so_many_addresses_of_a_host_are_tried() {
    let found = addresses(&[PUBLIC; 3 * ADDRESSES_MAX]);
    let reachable = connector(false).reachable("a", found).unwrap();
    assert_eq!(reachable.len(), ADDRESSES_MAX);
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_refuses() {
    let (closed, refusing) = listener().await;
    drop(closed);
    let (_open, listening) = listener().await;
    let stream = connect_first("a", &[refusing, listening]).await.unwrap();
    assert_eq!(stream.peer_addr().unwrap(), listening);
    let error = connect_first("a", &[refusing, refusing]).await.unwrap_err();
    assert!(matches!(error, Error::Connect { address, .. } if address == refusing));
}

#[tokio::test]
async fn a_connection_back_to_this_machine_is_refused() {
    let (_open, address) = listener().await;
    let stream = TcpStream::connect(address).await.unwrap();
    let error = connector(false).check_own("a", &stream).unwrap_err();
    assert!(matches!(
        error,
        Error::Refused {
            range: Range::Own,
            ..
        }
    ));
    assert!(connector(true).check_own("a", &stream).is_ok());
}

#[tokio::test]
async fn a_look_up_that_hangs_ends_with_the_connect_timeout() {
    let mut connector = connector(true);
    connector.timeout = Duration::from_millis(1);
    connector.resolver.permits = Arc::new(Semaphore::new(0));
    let uri = Uri::from_static("http://a.example/");
    let error = tower::Service::call(&mut connector, uri).await.unwrap_err();
    assert_eq!(error.cause(), Cause::Connect);
    assert_eq!(error.to_string(), "no connection to a.example within 1 ms");
}

#[test]
fn host_and_port_are_read_as_the_scheme_implies() {
    for (uri, host, port) in [
        ("http://a.example/", "a.example", 80),
        ("https://a.example/", "a.example", 443),
        ("https://[::1]:8443/", "::1", 8443),
    ] {
        let found = host_and_port(&Uri::from_static(uri)).unwrap();
        assert_eq!(found, (host.to_owned(), port));
    }
}
