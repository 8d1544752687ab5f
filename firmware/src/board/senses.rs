//! What a real board senses with where its node acts by itself: thermometers on a bus, read in a task of
//! their own.

use embassy_executor::{SendSpawner, task};
use embassy_sync::blocking_mutex::raw::CriticalSectionRawMutex;
use firmware::aside::{Aside, Desk};

use super::Sensing;

/// The board's sensors as the node asks them.
pub type Senses = Aside<'static, CriticalSectionRawMutex, Sensing>;

static DESK: Desk<CriticalSectionRawMutex> = Desk::new();

#[task]
async fn serve(sensing: Sensing) -> ! {
    DESK.serve(sensing).await
}

/// Has them read beside what else runs. To be called once.
pub fn beside(spawner: SendSpawner, sensing: Sensing) -> Senses {
    match serve(sensing) {
        Ok(task) => spawner.spawn(task),
        Err(_) => defmt::error!("no room for the sensors' task"),
    }
    Aside::at(&DESK)
}
